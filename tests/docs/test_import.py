"""The page on networks from other frameworks: its Python blocks run, on a network of snnTorch."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nir
import numpy as np
import pytest
import torch
from foreign import SPEC, digits, per_neuron, trained
from snntorch.export_nir import export_to_nir

from lbq_hw import golden
from lbq_hw.train.deploy.calibrate import FACTORS
from lbq_hw.train.export import integer_network
from lbq_hw.train.nir import inputs

PAGE = (Path(__file__).parents[2] / "docs" / "import.md").read_text("utf-8")


@pytest.mark.filterwarnings("ignore:2. its beta of 0.99:lbq_hw.train.export.ExportWarning")
@pytest.mark.filterwarnings("ignore:nirtorch.extract_nir_graph:DeprecationWarning")
def test_the_blocks_of_the_page_calibrate_a_module_and_its_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {"net": trained("snntorch subtract")}
    one = SPEC.normalize(torch.from_numpy(digits("train").images[:1]))
    graph = export_to_nir(per_neuron(names["net"], "subtract"), one, ignore_dims=[0])
    nir.write(tmp_path / "net.nir", graph)
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S):
        exec(block, names)
    assert f"| {inputs.COMPARED} other training inputs" in PAGE
    tried = f"So {len(FACTORS)} multiples of each scale are tried, from half to one and a half"
    assert tried in " ".join(PAGE.split())
    test = digits("test")
    for network in (names["network"], names["same"]):
        assert network.weight_bits == 4
        assert np.mean(golden.predict(network, test.images) == test.labels) > 0.8


def names_are_carried() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    names = tuple("abcdefghij")
    network = integer_network(net, SPEC, most_different=1, class_names=names)
    assert network.class_names == names
    with pytest.raises(ValueError, match="class_names"):
        integer_network(net, SPEC, most_different=1, class_names=names[:3])


SENTENCES = (
    (
        "`integer_network` takes `class_names` too, in the order of the model's outputs.",
        names_are_carried,
    ),
)


@pytest.mark.parametrize(("sentence", "check"), SENTENCES)
def test_a_sentence_of_the_page_is_so(sentence: str, check: Callable[[], None]) -> None:
    assert sentence in " ".join(PAGE.split())
    check()
