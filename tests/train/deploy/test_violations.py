"""Whatever keeps a model from being deployed has a place, a reason and a mend."""

import pytest
import torch
from torch import Tensor, nn

from lbq_hw import golden
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import agreement
from lbq_hw.train.export import integer_network
from lbq_hw.train.graph import GraphError
from lbq_hw.train.layers import Repeat, TimeMean
from lbq_hw.train.neurons import LBQ, BinaryLIF
from lbq_hw.train.preparation import prepare

SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=8)


def lbq() -> LBQ:
    return LBQ(timesteps=1, capacity=5, gamma0=0.5)


class Net(nn.Module):
    def __init__(self, **replaced: nn.Module) -> None:
        super().__init__()
        self.conv0, self.norm, self.n0 = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), lbq()
        self.conv1, self.n1 = nn.Conv2d(4, 4, 3, padding=1), lbq()
        self.pool, self.conv2, self.n2 = nn.MaxPool2d(1), nn.Conv2d(4, 4, 3, padding=1), lbq()
        self.fc = nn.Linear(256, 5)
        for name, module in replaced.items():
            setattr(self, name, module)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.body(self.n0(self.norm(self.conv0(x)))).flatten(1))

    def body(self, x: Tensor) -> Tensor:
        return self.n1(self.conv1(x))


class Sew(Net):
    def body(self, x: Tensor) -> Tensor:
        return self.n2(self.conv2(x + self.n1(self.conv1(x))))


class PooledSew(Net):
    def body(self, x: Tensor) -> Tensor:
        return self.pool(x + self.n1(self.conv1(x)))


class Repeated(Net):
    def body(self, x: Tensor) -> Tensor:
        return self.n1(self.conv1(x.repeat(1, 1, 1, 1)))


class Joined(Net):
    def body(self, x: Tensor) -> Tensor:
        return self.n1(self.conv1(torch.cat([x, self.n2(self.conv2(x))], 2)))


class JoinedAndAdded(Net):
    def body(self, x: Tensor) -> Tensor:
        return self.n1(self.conv1(x) + torch.cat([x, self.n2(self.conv2(x))], 1))


class JoinedWithItself(Net):
    def body(self, x: Tensor) -> Tensor:
        return self.n1(self.conv1(torch.cat([x, x])))


class GroupNorm(nn.GroupNorm):
    pass


class OneNeuron(Net):
    def body(self, x: Tensor) -> Tensor:
        return self.n1(self.conv2(self.n1(self.conv1(x))))


class Branching(Net):
    def body(self, x: Tensor) -> Tensor:
        return self.n1(self.conv1(x)) if x.sum() > 0 else x


class Counting(Net):
    def body(self, x: Tensor) -> Tensor:
        for _ in range(x.shape[0]):
            x = self.n1(self.conv1(x))
        return x


class NamedLikeTheReadout(Net):
    def __init__(self) -> None:
        super().__init__(logits=lbq(), input=lbq())

    def body(self, x: Tensor) -> Tensor:
        return self.input(self.conv2(self.logits(self.conv1(x))))


def broken(name: str, value: float) -> Net:
    model = Net()
    model.get_parameter(name).data.view(-1)[0] = value
    return model


SUM = (
    "acts on a sum of burst levels (n0, n1), which is no burst level; add currents before a "
    "neuron, not levels after it (no SEW residuals)"
)
VALUES = "{}: {} must be finite, and some values are not; train it again from a checkpoint before it diverged"  # noqa: E501


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize(
    ("make", "violations"),
    [
        (Sew, [f"conv2: {SUM}"]),
        (PooledSew, [f"pool: {SUM}"]),
        (
            Repeated,
            [
                "repeat (repeat): the function repeat has no integer form; to repeat a static "
                "input over time, use train.layers.Repeat"
            ],
        ),
        (
            lambda: Joined(conv1=nn.Conv2d(4, 4, 3, stride=(2, 1), padding=1)),
            [
                "cat (cat): the function cat has no integer form; join channels (dim=1), and "
                "let convolutions, linear layers, norms, neurons and pools read them"
            ],
        ),
        (
            lambda: JoinedAndAdded(conv1=nn.Conv2d(4, 8, 1), fc=nn.Linear(512, 5)),
            [
                "cat (cat): joins tensors for a layer that cannot read them part by part; "
                "join channels (dim=1), and let convolutions, linear layers, norms, neurons "
                "and pools read them"
            ],
        ),
        (
            JoinedWithItself,
            [
                "cat (cat): the function cat has no integer form; to repeat a static input over "
                "time, use train.layers.Repeat"
            ],
        ),
        (
            lambda: Net(norm=GroupNorm(2, 4)),
            ["norm: GroupNorm has no integer form; use the layers of docs/layers.md"],
        ),
        (OneNeuron, ["n1: is called more than once; give each call its own layer"]),
        (
            lambda: OneNeuron(n1=BinaryLIF(timesteps=1)),
            ["n1: is called more than once; give each call its own layer"],
        ),
        (
            NamedLikeTheReadout,
            [
                "logits: 'logits' is the name of the network's readout; give the neuron another "
                "name",
                "input: 'input' is the name of the network's input; give the neuron another name",
            ],
        ),
        (lambda: broken("conv1.weight", torch.nan), [VALUES.format("conv1", "weight")]),
        (lambda: broken("fc.bias", torch.inf), [VALUES.format("fc", "bias")]),
        (
            lambda: broken("norm.weight", torch.inf),
            [VALUES.format("the BatchNorm2d before n0", "weight")],
        ),
        (lambda: broken("n0.rho", torch.nan), [VALUES.format("n0", "rho")]),
    ],
)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_what_cannot_be_deployed_has_place_reason_and_mend(make, violations, bits):
    model = make()
    with pytest.raises(GraphError) as error:
        integer_network(model, SPEC) if bits is None else prepare(model, SPEC, weight_bits=bits)
    assert [str(violation) for violation in error.value.violations] == violations


class Line(nn.Sequential):
    def __init__(self, padding: int) -> None:
        line = nn.Conv1d(1, 4, 3, padding=padding)
        super().__init__(nn.Flatten(2), line, lbq(), nn.Flatten(), nn.LazyLinear(5))
        self(torch.zeros(1, 1, 1, 8))


class TwoPaddings(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.n0(self.conv0(x) + self.conv2(x)).flatten(1))


UNEVEN = (
    "input: a mean is subtracted, and the input is padded unevenly: (rows, columns) of {}; "
    "pad it alike in all layers and on all sides, or not at all, or use no mean"
)


@pytest.mark.parametrize(
    ("make", "shape", "paddings"),
    [
        (lambda: Line(1), (1, 1, 8), "(0, 1)"),
        (lambda: TwoPaddings(conv2=nn.Conv2d(1, 4, 1)), (1, 8, 8), "(0, 0), (1, 1)"),
    ],
)
def test_a_mean_wants_the_input_padded_alike_on_all_sides(make, shape, paddings):
    spec = InputSpec(shape=shape, static=True, bits=8, mean=(1 / 3,), std=(0.3,))
    with pytest.raises(GraphError) as error:
        prepare(make(), spec)
    assert [str(violation) for violation in error.value.violations] == [UNEVEN.format(paddings)]


def test_a_line_without_padding_may_have_a_mean():
    spec = InputSpec(shape=(1, 1, 8), static=True, bits=8, mean=(1 / 3,), std=(0.3,))
    assert integer_network(Line(0).eval(), spec).timesteps == 1


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Branching, "symbolically traced variables cannot be used as inputs to control flow"),
        (Counting, "'Proxy' object cannot be interpreted as an integer"),
    ],
)
def test_a_forward_that_depends_on_data_is_named_with_its_line(kind, reason):
    code = kind.body.__code__
    line = code.co_firstlineno + 1
    for attempt in (lambda: integer_network(kind(), SPEC), lambda: prepare(kind(), SPEC)):
        with pytest.raises(GraphError) as error:
            attempt()
        assert [str(violation) for violation in error.value.violations] == [
            f"{kind.__name__} (test_violations.py:{line}): its forward depends on the values of a "
            f"tensor ({reason}); decide by sizes and settings that are known beforehand"
        ]


@pytest.mark.parametrize("name", ["norm.bias", "fc.bias"])
def test_numbers_out_of_proportion_are_named_with_their_layer(name):
    layer = {"norm.bias": "n0", "fc.bias": "logits"}[name]
    with pytest.raises(GraphError) as error:
        integer_network(broken(name, 1e30), SPEC)
    assert [str(violation) for violation in error.value.violations] == [
        f"{layer}: its weights, norms or bias are out of proportion to its step: a value to be "
        "rounded must be finite and below 2**53 in magnitude; check whether its norm or its gamma "
        "has diverged, and train it again"
    ]


def test_sums_beyond_62_bits_are_refused():
    neuron = LBQ(timesteps=16, capacity=5, gamma0=0.3, beta=0.3)
    norm = nn.BatchNorm2d(4)
    norm.bias.data[0] = 5e10
    head = (nn.Flatten(), nn.Linear(256, 5), TimeMean(16))
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), norm, Repeat(16), neuron, *head)
    with pytest.raises(GraphError) as error:
        integer_network(model, SPEC)
    assert [str(violation) for violation in error.value.violations] == [
        "network: layer '3': its sums may pass 62 bits; check whether a norm or a gamma has "
        "diverged, or use fewer fraction bits"
    ]


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("bias", [True, False])
def test_a_readout_without_weights_answers_with_its_bias(bits, bias):
    model = Net()
    model.fc.weight.data.zero_()
    wanted = int(model.fc.bias.argmax())
    if not bias:
        model.fc.bias.data.zero_()
        wanted = 0
    ready = model if bits is None else prepare(model, SPEC, weight_bits=bits)
    network = integer_network(ready, SPEC)
    assert set(golden.predict(network, agreement.samples(network))) == {wanted}


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize(("padding", "side"), [("same", 8), ("valid", 6)])
def test_padding_by_name_is_understood(padding, side, bits):
    model = Net(conv0=nn.Conv2d(1, 4, 3, padding=padding), fc=nn.Linear(4 * side**2, 5)).double()
    ready = model if bits is None else prepare(model, SPEC, weight_bits=bits)
    network = integer_network(ready, SPEC)
    assert network.layers[0].paths[0].padding == ((1, 1) if padding == "same" else (0, 0))
    assert network.layers[0].shape == (4, side, side)
