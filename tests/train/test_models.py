"""Shapes, counts and tracing of the networks; another naming's weights find their places."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lbq_hw.train import checkpoint, models, neurons
from lbq_hw.train.graph.trace import trace

COUNTS = {  # name: (input, classes, MACs, parameters)
    "resnet": ((3, 32, 32), 10, 71_746_816, 676_682),
    "resnet20": ((3, 32, 32), 10, 2_587_235_328, 17_289_866),
    "resnet19": ((3, 32, 32), 10, 2_285_373_952, 12_697_994),
    "resnet18": ((3, 224, 224), 1000, 1_814_073_344, 11_689_512),
    "resnet34": ((3, 224, 224), 1000, 3_663_761_408, 21_797_672),
    "digits": ((1, 8, 8), 10, 62_464, 6_178),
    "mnist": ((1, 28, 28), 10, 406_592, 19_258),
    "nmnist": ((2, 34, 34), 10, 196_528, 7_690),
    "vgg": ((3, 32, 32), 10, 152_805_376, 1_187_274),
}


def neuron(kind: str = "lbq", timesteps: int = 2) -> nn.Module:
    return neurons.build(kind, timesteps=timesteps, capacity=5)


def build(name: str, *, timesteps: int = 2, static: bool = True, **options: Any):
    shape, classes = COUNTS[name][:2]
    return models.build(
        name,
        neuron=partial(neuron, timesteps=timesteps),
        timesteps=timesteps,
        input_shape=options.pop("input_shape", shape),
        classes=classes,
        static=static,
        **options,
    )


@pytest.mark.parametrize("name", COUNTS)
def test_a_model_has_the_counts_it_is_known_by(name):
    shape, _, macs, parameters = COUNTS[name]
    with torch.device("meta"):
        model = build(name)
    assert models.parameter_count(model) == parameters
    assert models.macs(model, shape) == macs


def test_the_neurons_scalars_are_counted_apart():
    with torch.device("meta"):
        model = build("resnet20")
    scalars = models.neuron_parameters(model)
    assert len(scalars) == 19 * 2
    assert {name.rsplit(".", 1)[1] for name in scalars} == {"rho", "eta"}
    assert sum(p.numel() for p in model.parameters()) == 17_289_866 + 38


def test_macs_do_not_depend_on_time_nor_on_how_the_input_arrives():
    shape, _, macs, _ = COUNTS["nmnist"]
    for timesteps in (1, 3):
        for static in (True, False):
            model = build("nmnist", timesteps=timesteps, static=static)
            assert models.macs(model, shape) == macs


def test_counting_macs_leaves_a_model_in_training_as_it_was():
    model = build("digits").train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    models.macs(model, (1, 8, 8))
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("name", ["digits", "mnist", "nmnist", "vgg"])
def test_a_traced_small_model_computes_the_same_logits(name):
    torch.manual_seed(0)
    model = (build(name, width=8) if name == "vgg" else build(name)).eval()
    x = torch.rand(3, *COUNTS[name][0])
    logits = model(x)
    assert logits.shape == (3, 10)
    assert torch.equal(trace(model)(x), logits)


def test_a_narrow_resnet_has_projections_where_a_stage_starts_and_identities_elsewhere():
    model = build("resnet20", widths=(4, 6, 8))
    assert isinstance(model, models.ResNet)
    blocks = [block for block in model.blocks if isinstance(block, models.Block)]
    assert [block.shortcut is not None for block in blocks] == [i in (3, 6) for i in range(9)]
    assert model(torch.rand(2, 3, 32, 32)).shape == (2, 10)


def test_a_block_adds_the_shortcut_before_its_second_neuron():
    torch.manual_seed(0)
    block = models.Block(4, 6, 2, partial(neuron, timesteps=1)).eval()
    assert block.shortcut is not None
    x = torch.rand(2, 4, 6, 6)
    inner = block.neuron1(block.norm1(block.conv1(x)))
    expected = block.neuron2(block.norm2(block.conv2(inner)) + block.shortcut(x))
    assert torch.equal(block(x), expected)


def test_the_static_stem_runs_once_and_the_temporal_one_every_timestep():
    seen = []
    for static in (True, False):
        model = build("digits", timesteps=3, static=static)
        conv = model.get_submodule("layers.0.conv")
        conv.register_forward_hook(lambda _m, _i, output: seen.append(len(output)))
        x = torch.rand(2, 1, 8, 8) if static else torch.rand(3, 2, 1, 8, 8)
        assert model(x).shape == (2, 10)
    assert seen == [2, 6]


def test_resnet19_has_a_hidden_linear_layer_with_a_neuron_of_its_own():
    model = build("resnet19", widths=(4, 6, 8), head=5, stem_stride=2)
    assert isinstance(model, models.ResNet)
    assert model.head is not None
    assert model.fc.in_features == 5
    assert model(torch.rand(2, 3, 32, 32)).shape == (2, 10)


def test_a_resnet_of_free_shape_has_the_stages_that_it_is_given():
    model = build("resnet", widths=(4, 6), blocks=(1, 2), stem_stride=2)
    assert isinstance(model, models.ResNet)
    assert [block.conv2.out_channels for block in model.blocks] == [4, 6, 6]
    assert model.blocks(model.stem(torch.rand(1, 3, 32, 32))).shape[1:] == (6, 8, 8)


def test_an_unknown_model_is_an_error_that_names_the_nearest():
    message = (
        "model must be one of resnet, resnet20, resnet19, resnet18, resnet34, digits, mnist, "
        "nmnist, vgg, not 'resnet21' (nearest: resnet20)"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        models.build("resnet21", neuron=neuron, timesteps=1, input_shape=(3, 8, 8), classes=10)


def test_an_option_a_model_does_not_have_is_an_error_that_lists_its_options():
    message = "options of model resnet20 must be among widths, stem_stride, not 'channels'"
    with pytest.raises(ValueError, match=re.escape(message)):
        build("resnet20", channels=(1, 2))


def test_a_wrong_number_of_channels_is_an_error():
    message = "channels must have one entry a convolution (3), not (8, 16)"
    with pytest.raises(ValueError, match=re.escape(message)):
        build("mnist", channels=(8, 16))


def test_an_input_too_small_for_the_pools_is_an_error():
    message = "input_shape must survive all strides and pools, not (3, 4, 4)"
    with pytest.raises(ValueError, match=re.escape(message)):
        build("vgg", width=4, input_shape=(3, 4, 4))


def _foreign(name: str) -> str:
    """The other naming of ResNet weights, from ours."""
    words = {"shortcut.conv": "sc.0", "shortcut.norm": "sc.1", "stem.": "", "blocks": "L"}
    for ours, theirs in (words | {"conv": "c", "norm": "b", "neuron": "n"}).items():
        name = name.replace(ours, theirs)
    return name


def _write(path: Path, model: nn.Module, *, drop: str = "", add: tuple[str, ...] = ()) -> None:
    arrays: dict[str, Any] = {}
    for name, tensor in model.state_dict().items():
        array, name = tensor.numpy(), _foreign(name)
        if array.ndim == 4:
            name, array = name + ":bf16", (array.view(np.uint32) >> 16).astype(np.uint16)
        if name != drop:
            arrays[name] = array
    arrays |= {name: np.zeros(1) for name in add}
    np.savez(path, **arrays)


def _bf16(tensor: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy((tensor.numpy().view(np.uint32) & 0xFFFF0000).view(np.float32))


def test_weights_of_the_other_naming_load_and_convolutions_widen_from_bf16(tmp_path):
    torch.manual_seed(1)
    source, target = (build("resnet20", widths=(4, 6, 8)) for _ in range(2))
    _write(tmp_path / "w.npz", source)
    checkpoint.load_npz(target, tmp_path / "w.npz")
    for name, tensor in source.state_dict().items():
        expected = _bf16(tensor) if tensor.ndim == 4 else tensor
        assert torch.equal(target.state_dict()[name], expected), name


def test_a_missing_or_an_unknown_array_is_an_error(tmp_path):
    model = build("resnet20", widths=(4, 6, 8))
    path = tmp_path / "w.npz"
    _write(path, model, drop="L.2.n1.rho")
    with pytest.raises(
        checkpoint.CheckpointError, match=re.escape(f"{path} lacks blocks.2.neuron1.rho")
    ):
        checkpoint.load_npz(model, path)
    _write(path, model, add=("fc.gain",))
    with pytest.raises(checkpoint.CheckpointError, match=re.escape(f"{path} has unknown fc.gain")):
        checkpoint.load_npz(model, path)


def test_an_array_of_another_shape_is_an_error(tmp_path):
    path = tmp_path / "w.npz"
    _write(path, build("resnet20", widths=(4, 6, 10)))
    message = f"in {path} must have shape"
    with pytest.raises(checkpoint.CheckpointError, match=re.escape(message)):
        checkpoint.load_npz(build("resnet20", widths=(4, 6, 8)), path)
