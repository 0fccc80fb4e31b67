"""Export: the integer network does what the float one does, as finely as its bits allow."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from small_models import model_input, raw_images, small_model
from torch import nn

from lbq_hw import datasets, file, golden
from lbq_hw.network import INPUT, Network
from lbq_hw.train import checkpoint, neurons
from lbq_hw.train.__main__ import main as train_main
from lbq_hw.train.checkpoint import load_run
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy.integer import IntegerNetwork
from lbq_hw.train.export import integer_network
from lbq_hw.train.export import main as export_main
from lbq_hw.train.graph import GraphError
from lbq_hw.train.layers import Repeat, TimeMean
from lbq_hw.train.preparation import prepare
from lbq_hw.train.quantize import Conv2d, Linear, codes
from lbq_hw.train.settings import config as configurations


def float_levels(model: nn.Module, x: torch.Tensor) -> dict[str, np.ndarray]:
    """Levels of every neuron, merged over time, by module path."""
    seen: dict[str, np.ndarray] = {}
    hooks = [
        module.register_forward_hook(lambda m, i, o, n=name: seen.update({n: o.numpy()}))  # noqa: ARG005
        for name, module in model.named_modules()
        if isinstance(module, neurons.Neuron)
    ]
    with torch.no_grad():
        model.eval()(x)
    for hook in hooks:
        hook.remove()
    return seen


def integer_levels(network: Network, raw: torch.Tensor) -> dict[str, np.ndarray]:
    traces = golden.run(network, raw.numpy(), keep="levels").traces
    return {
        name: trace.levels.reshape(-1, *trace.levels.shape[2:])
        for name, trace in traces.items()
        if trace.levels is not None and name != INPUT
    }


def logits(network: Network, raw: torch.Tensor) -> np.ndarray:
    """Logits in real units."""
    last = network.layers[-1]
    assert last.scale is not None
    scale = last.scale[0] / 2**last.fraction_bits / network.timesteps
    return golden.run(network, raw.numpy()).logits * scale


class Projecting(nn.Module):
    """A convolution and a projecting shortcut into one neuron, with norms or without."""

    def __init__(self, *, norms: bool) -> None:
        super().__init__()

        def lbq() -> nn.Module:
            return neurons.build("lbq", timesteps=2, capacity=5, gamma0=0.3)

        def norm() -> nn.Module:
            return nn.BatchNorm2d(6) if norms else nn.Identity()

        self.stem, self.repeat, self.n1 = nn.Conv2d(1, 4, 3, padding=1), Repeat(2), lbq()
        self.conv, self.norm = nn.Conv2d(4, 6, 3, stride=2, padding=1), norm()
        self.shortcut, self.shortcut_norm = nn.Conv2d(4, 6, 1, stride=2), norm()
        self.n2, self.fc, self.mean = lbq(), nn.Linear(6 * 16, 3), TimeMean(2)
        for module in (self.norm, self.shortcut_norm):
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.weight, -2, 2)
        self.shortcut.weight.data *= 12  # too wide for the first path's step

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.n1(self.repeat(self.stem(x)))
        x = self.n2(self.norm(self.conv(x)) + self.shortcut_norm(self.shortcut(x)))
        return self.mean(self.fc(x.flatten(1)))


def quantization_trained(name: str, bits: int) -> tuple[nn.Module, InputSpec]:
    torch.manual_seed(1)
    if name.startswith("projecting"):
        plain: nn.Module = Projecting(norms=name == "projecting")
        spec = InputSpec(shape=(1, 8, 8), static=True, bits=8)
    else:
        plain, spec = small_model(name.removesuffix(" with a mean"), gamma0=0.3)
    if name.endswith(" with a mean"):
        spec = dataclasses.replace(spec, mean=(102 / 255,), std=(0.3,))
    return prepare(plain, spec, weight_bits=bits).double().eval(), spec


def assert_levels_are_equal(network: Network, model: nn.Module, spec: InputSpec) -> None:
    raw = raw_images(spec, 4)
    expected = float_levels(model, model_input(spec, raw).double())
    found = integer_levels(network, raw)
    assert expected.keys() == found.keys()
    for name, levels in found.items():
        assert levels.any(), name
        np.testing.assert_array_equal(levels.reshape(expected[name].shape), expected[name], name)


NO_IDENTITY = ["mnist", "nmnist", "mnist with a mean", "projecting", "projecting without norms"]


@pytest.mark.parametrize("name", NO_IDENTITY)
@pytest.mark.parametrize("bits", [8, 4, 3, 2])
def test_what_was_trained_quantized_is_deployed_level_for_level(name, bits):
    model, spec = quantization_trained(name, bits)
    network = integer_network(model, spec, fraction=12)
    assert network.weight_bits == bits
    assert_levels_are_equal(network, model, spec)
    if name.startswith("projecting"):
        assert network.by_name["n2"].paths[1].exponent > 0


@pytest.mark.parametrize("bits", [8, 4, 3, 2])
def test_identity_weights_are_all_that_rounds_what_was_trained_quantized(bits):
    model, spec = quantization_trained("digits", bits)
    raw = raw_images(spec, 4)
    expected = float_levels(model, model_input(spec, raw).double())
    found = integer_levels(integer_network(model, spec, fraction=12), raw)
    agreement = [np.mean(expected[key] == found[key].reshape(expected[key].shape)) for key in found]
    assert min(agreement) > 0.995  # rounded to a part in 2**7


@pytest.mark.parametrize("name", NO_IDENTITY)
@pytest.mark.parametrize(("trained", "deployed"), [(2, 3), (2, 8), (3, 4), (4, 16)])
def test_more_bits_than_it_was_trained_with_deploy_the_same_network(name, trained, deployed):
    model, spec = quantization_trained(name, trained)
    network = integer_network(model, spec, weight_bits=deployed, fraction=12)
    assert network.weight_bits == deployed
    assert_levels_are_equal(network, model, spec)


@pytest.mark.parametrize("bits", [3, 2])
def test_fewer_bits_round_the_weights_that_the_network_ran_with(bits):
    model, spec = quantization_trained("mnist", 4)
    network = integer_network(model, spec, weight_bits=bits, most_different=1)
    for module in model.modules():
        if isinstance(module, Conv2d | Linear):
            with torch.no_grad():
                step, _ = module.current_step()
                module.weight.copy_(codes(module.weight, step, 4) * step)
    again = integer_network(model, spec, weight_bits=bits, most_different=1)
    assert file.digest(network) == file.digest(again)


def test_fine_weights_give_the_float_network_with_every_shortcut_and_pool():
    torch.manual_seed(2)
    for name in ("resnet20", "vgg"):
        plain, spec = small_model(name, gamma0=0.3)
        network = integer_network(plain, spec, weight_bits=16, fraction=10)
        raw = raw_images(spec, 2)
        with torch.no_grad():
            expected = plain.double().eval()(model_input(spec, raw).double()).numpy()
        np.testing.assert_allclose(logits(network, raw), expected, atol=0.03)


def test_a_mean_becomes_a_border_and_a_stem_without_padding():
    torch.manual_seed(3)
    plain, spec = small_model("resnet20", gamma0=0.3)
    mean, std = (102 / 255, 0.2, 128 / 255), (0.25, 0.2, 0.3)
    spec = dataclasses.replace(spec, mean=mean, std=std)
    network = integer_network(plain, spec, weight_bits=16, fraction=10)
    assert network.input.border == 1
    assert network.input.border_value == (102, 51, 128)
    assert network.layers[0].paths[0].padding == (0, 0)
    raw = raw_images(spec, 2)
    levels = float_levels(prepare(plain.double(), spec), model_input(spec, raw).double())[
        "stem.neuron"
    ]
    assert (
        np.mean(integer_levels(network, raw)["stem.neuron"] == levels) > 0.9995
    )  # rounding to 16 bits


@pytest.mark.parametrize("bits", [16, 8, 4, 3, 2])
def test_an_image_of_mean_pixels_leaves_the_stem_its_constant_at_any_bits(bits):
    torch.manual_seed(3)
    plain, spec = small_model("resnet20", gamma0=0.3)
    pixels = torch.tensor([102, 51, 128], dtype=torch.uint8)
    mean = tuple((pixels.double() / 255).tolist())
    raw = pixels.reshape(1, 3, 1, 1).expand(1, *spec.shape).contiguous()
    norm = plain.get_submodule("stem.norm")
    assert isinstance(norm, nn.BatchNorm2d)
    norm.bias.data.copy_(torch.tensor([0.1, 0.5, 0.8, 1.4]))
    with_mean = dataclasses.replace(spec, mean=mean, std=(0.25, 0.2, 0.3))
    network = integer_network(plain, with_mean, weight_bits=bits, fraction=10, most_different=1)
    model = prepare(plain.double(), with_mean)
    expected = float_levels(model, torch.zeros(1, *spec.shape, dtype=torch.float64))["stem.neuron"]
    np.testing.assert_array_equal(integer_levels(network, raw)["stem.neuron"], expected)


def lbq() -> nn.Module:
    return neurons.build("lbq", timesteps=1, capacity=5, gamma0=0.3)


class Twice(nn.Module):
    """Two convolutions of one input, the second with far larger weights."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = nn.Conv2d(1, 4, 3), nn.Conv2d(1, 4, 3)
        self.large.weight.data *= 10

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.small(x) + self.large(x)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (Twice(), lbq(), nn.Flatten(), nn.Linear(144, 3)),
        lambda: (lbq(), nn.Flatten(), nn.Linear(64, 3)),
        lambda: (nn.AvgPool2d(2), nn.Conv2d(1, 4, 3), lbq(), nn.Flatten(), nn.Linear(16, 3)),
        lambda: (nn.Flatten(), nn.Linear(64, 5), lbq(), nn.Linear(5, 3)),
    ],
    ids=("two convolutions", "a neuron", "a pool", "a linear layer"),
)
def test_a_mean_is_subtracted_from_whatever_reads_the_input(make):
    torch.manual_seed(7)
    layers = make()
    model = nn.Sequential(*layers)
    spec = InputSpec(shape=(1, 8, 8), static=True, bits=8, mean=(0.31,), std=(0.25,))
    network = integer_network(model, spec, weight_bits=16, fraction=10)
    assert_levels_are_equal(network, prepare(model.double(), spec), spec)
    if isinstance(layers[0], Twice):
        assert network.layers[0].paths[1].exponent > 0


@pytest.mark.parametrize(
    "layers",
    [
        (nn.AvgPool2d(2), nn.Conv2d(1, 4, 3, padding=1), lbq(), nn.Flatten(), nn.Linear(64, 3)),
        (nn.AvgPool2d(2, padding=1), nn.Conv2d(1, 4, 2), lbq(), nn.Flatten(), nn.Linear(64, 3)),
    ],
)
def test_a_mean_before_a_pool_and_padding_is_refused(layers):
    spec = InputSpec(shape=(1, 8, 8), static=True, bits=8, mean=(0.4,), std=(0.25,))
    with pytest.raises(GraphError) as error:
        integer_network(nn.Sequential(*layers), spec)
    assert str(error.value) == (
        "the model has no integer form (1 violation):\n"
        "  input: a mean is subtracted, and the input is both pooled and padded; pool it without"
        " padding, or train without a mean"
    )


def test_a_negative_norm_gain_flips_the_codes():
    plain, spec = small_model("mnist", gamma0=0.3)
    first = plain.layers[0].norm
    first.weight.data.fill_(1.0)
    model = prepare(plain, spec, weight_bits=4)
    positive = integer_network(model, spec).layers[0].paths[0].weight
    model.get_submodule("layers.0.norm").weight.data.fill_(-1.0)  # type: ignore[union-attr]
    negative = integer_network(model, spec).layers[0].paths[0].weight
    np.testing.assert_array_equal(positive, -negative)


def test_a_dead_channel_keeps_its_widths_small():
    plain, spec = small_model("mnist", gamma0=0.3)
    alive = integer_network(plain, spec)
    plain.layers[1].norm.weight.data[3] = 1e-30
    network = integer_network(plain, spec)
    assert network.layers[1].paths[0].weight[3].any() == np.False_
    widest = max(network.bounds(layer).membrane_bits for layer in network.layers)
    assert widest <= max(alive.bounds(layer).membrane_bits for layer in alive.layers) + 6


def test_two_paths_share_a_scale_and_the_larger_gets_an_exponent():
    torch.manual_seed(4)
    plain, spec = small_model("resnet20", gamma0=0.3)
    plain.blocks[3].shortcut.norm.weight.data *= 20
    layer = integer_network(plain, spec).by_name["blocks.3.neuron2"]
    main, shortcut = layer.paths
    assert main.exponent == 0
    assert shortcut.exponent >= 2
    assert np.abs(shortcut.weight).max() <= 127


def test_an_identity_wider_than_the_weights_stays_precise():
    plain, spec = small_model("digits", gamma0=0.3)
    network = integer_network(plain, spec, weight_bits=2, most_different=1)
    main, identity = network.by_name["residual.neuron"].paths
    assert identity.is_identity
    assert np.abs(identity.weight).min() >= 64
    assert main.exponent > 0


def test_the_readout_has_one_scale_so_that_classes_compare():
    plain, spec = small_model("digits", gamma0=0.3)
    for model in (plain, prepare(plain, spec, weight_bits=4)):
        scale = integer_network(model, spec).layers[-1].scale
        assert scale is not None
        assert len(set(scale)) == 1


class AveragePools(nn.Module):
    """Average pools in front of a convolution, a linear layer and a bare neuron."""

    def __init__(self) -> None:
        super().__init__()

        def lbq() -> nn.Module:
            return neurons.build("lbq", timesteps=2, capacity=7, gamma0=0.2)

        self.conv1, self.n1 = nn.Conv2d(1, 4, 3, padding=1), lbq()
        self.pool, self.n2 = nn.AvgPool2d(2), lbq()
        self.conv2, self.n3 = nn.Conv2d(4, 5, 3, padding=1), lbq()
        self.repeat, self.mean, self.fc = Repeat(2), TimeMean(2), nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.n2(self.pool(self.n1(self.repeat(self.conv1(x)))))
        x = self.n3(self.conv2(nn.functional.avg_pool2d(x, 2)))
        return self.mean(self.fc(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)))


def test_average_pools_become_windows_whose_taps_share_a_weight():
    torch.manual_seed(5)
    model, spec = AveragePools(), InputSpec(shape=(1, 12, 12), static=True, bits=8)
    network = integer_network(model, spec, weight_bits=16, fraction=10)
    pools = [layer.paths[0].pool for layer in network.layers]
    assert [pool and pool.kernel for pool in pools] == [None, (2, 2), (2, 2), (3, 3)]
    raw = raw_images(spec, 4)
    with torch.no_grad():
        expected = model.double().eval()(model_input(spec, raw).double()).numpy()
    np.testing.assert_allclose(logits(network, raw), expected, atol=0.02)


def test_a_learned_decay_is_rounded_to_a_fraction():
    plain, spec = small_model("digits", beta=0.7, learn_beta=True)
    neuron = integer_network(plain, spec, decay_bits=6).layers[0].neuron
    assert neuron is not None
    assert (neuron.decay, neuron.decay_bits) == (45, 6)


@pytest.mark.parametrize("kind", ["binary", "quant-relu", "burst"])
def test_other_unsigned_neurons_export_too(kind):
    torch.manual_seed(6)
    plain, spec = small_model("mnist", kind=kind, timesteps=1)
    network = integer_network(plain, spec, weight_bits=16, fraction=8)
    raw = raw_images(spec, 3)
    with torch.no_grad():
        expected = plain.double().eval()(model_input(spec, raw).double()).numpy()
    np.testing.assert_allclose(logits(network, raw), expected, atol=0.02)
    assert IntegerNetwork(network)(raw).tolist() == golden.run(network, raw.numpy()).logits.tolist()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    options = ["--config", "digits", "--set", "train.epochs=1", "--out", str(folder)]
    assert train_main(options) == 0
    return folder


def test_a_run_is_exported_beside_its_checkpoint(run, capsys):
    capsys.readouterr()
    assert export_main([str(run), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    network = file.load(run / "net.lbq")
    assert printed["digest"] == file.digest(network)
    assert [row["layer"] for row in printed["layers"]] == [x.name for x in network.layers]
    assert network.meta["dataset"] == "digits"
    assert network.meta["config"]["train"]["epochs"] == 1
    assert 0 < network.meta["float_accuracy"] <= 100
    assert network.meta["float_split"] == "test"
    shares = {row["layer"]: row["different"] for row in printed["layers"]}
    assert shares == printed["agreement"]["layers"]
    assert max(shares.values()) <= 0.25


def test_a_run_on_digits_is_compared_on_its_own_images_without_being_told(run, capsys):
    capsys.readouterr()
    assert export_main([str(run), "--test", "20"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "on 32 training images classes that differ from pixels to logits: " in printed
    assert "random inputs" not in printed


def test_arrays_by_name_export_like_the_run_they_came_from(run, tmp_path, capsys):
    model, _, _ = load_run(run)
    arrays = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    np.savez(tmp_path / "digits.npz", **arrays)
    assert export_main([str(tmp_path / "digits.npz"), "--config", "digits"]) == 0
    assert export_main([str(run), "--out", str(tmp_path / "run.lbq")]) == 0
    capsys.readouterr()
    ours, theirs = (file.load(tmp_path / name) for name in ("digits.lbq", "run.lbq"))
    raw = datasets.load("digits", split="test").images
    np.testing.assert_array_equal(golden.run(ours, raw).logits, golden.run(theirs, raw).logits)


def test_arrays_of_recordings_with_summed_pixels_export_in_the_runs_shape(tmp_path, capsys):
    options = ["--set", "data.size=17", "--set", "neuron.timesteps=2"]
    config = configurations.load("nmnist", options[1::2])
    spec = config.data.spec((2, 17, 17), static=False)
    model = checkpoint.build(config, spec, 10).eval()
    arrays = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    np.savez(tmp_path / "n.npz", **arrays)
    assert export_main([str(tmp_path / "n.npz"), "--config", "nmnist", *options]) == 0
    capsys.readouterr()
    network = file.load(tmp_path / "n.lbq")
    assert network.input.shape == (2, 17, 17)
    expected = integer_network(model, spec)
    raw = raw_images(spec, 2).numpy()
    np.testing.assert_array_equal(golden.run(network, raw).logits, golden.run(expected, raw).logits)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["{run}", "--config", "digits"], "a run has its own configuration: --config and --set are"
         " for an .npz"),
        (["{run}", "--weight-bits", "1"], "weight bits must be between 2 and 16, not 1"),
        (["{run}", "--weight-bits", "0"], "weight bits must be between 2 and 16, not 0"),
        (["{none}/x.npz"], "{none}/x.npz needs --config: which network its arrays belong to"),
        (["{none}"], "{none} holds no checkpoint 'last': {none}/last.json is missing"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_nothing_is_written(run, tmp_path, capsys, options, reason):
    names = {"run": run, "none": tmp_path}
    out = tmp_path / "out.lbq"
    arguments = [option.format(**names) for option in options]
    assert export_main([*arguments, "--out", str(out)]) == 2
    assert capsys.readouterr().err == f"error: {reason.format(**names)}\n"
    assert not out.exists()
