"""What `prepare` accepts, export deploys: random structures, quantized, against their modules.

A layer of the module and one of the integer network get the same levels. Whatever the network
rounds is stated here, as a bound in its own units, and nothing else may differ: biases, thresholds
and resets to half a unit, decays downwards, identity weights to half a code, and the codes of
channels too weak to matter (`fold.FINEST_STEP`) to half a code.
"""

from collections import Counter

import numpy as np
import pytest
import torch
from random_modules import draw, draw_line

from lbq_hw.network import INPUT, Layer, Network
from lbq_hw.train.deploy import agreement
from lbq_hw.train.deploy.agreement import Forced
from lbq_hw.train.deploy.integer import IntegerNetwork, max_pool, path_sum
from lbq_hw.train.deploy.rounding import FINEST_STEP
from lbq_hw.train.export import integer_network
from lbq_hw.train.graph.trace import analyze
from lbq_hw.train.preparation import prepare

BITS = (8, 6, 4, 3, 2)
MODULES = 300
QUICK = 100  # of them, those of the tests that are not slow
SHARE = 20  # modules of one test
LINES = 7  # one module of so many has layers along one axis
NEARLY = 1e-9  # of float64 sums, relative


def finest(network: Network, layer: Layer) -> float:
    """The scale below which codes are rounded again."""
    capacities = [network.source_capacity(path) for path in layer.paths]
    return 0.0 if layer.gamma is None else layer.gamma * FINEST_STEP / max(capacities)


def current_slack(network: Network, layer: Layer, tensors: dict[str, torch.Tensor]) -> np.ndarray:
    """How far a layer's integer current (T', n, C, H, W) may be from the module's, in units."""
    assert layer.scale is not None
    weak = layer.scale <= finest(network, layer) * (1 + NEARLY)
    slack: np.ndarray | float = 0.5
    for path in layer.paths:
        rounded = np.ones(len(layer.scale), bool) if path.is_identity else weak
        ones = torch.tensor(np.broadcast_to(rounded.reshape(-1, *[1] * (path.weight.ndim - 1)),
                                            path.weight.shape).copy())  # fmt: skip
        sums = path_sum(tensors[path.source], ones.double(), path).numpy()
        slack = slack + 0.5 * sums * 2.0 ** (path.exponent + layer.fraction_bits)
    return np.asarray(slack)


def check_layer(network: Network, forced: Forced, tensors: dict[str, torch.Tensor]) -> int:
    """Assert that a layer is its module's up to rounding; the number of levels it changed."""
    layer = network.by_name[forced.population.name]
    assert layer.scale is not None
    assert forced.trace.acc is not None
    columns = (-1, 1, 1)
    unit = (layer.scale / 2.0**layer.fraction_bits).reshape(columns)
    slack = current_slack(network, layer, tensors)
    steps, count = network.timesteps, forced.trace.acc.shape[1]
    whole = (steps, count, *layer.shape)
    acc = forced.trace.acc.astype(np.int64)
    integer = np.broadcast_to((acc << layer.fraction_bits) + layer.bias.reshape(columns), whole)
    if layer.neuron is None:
        mine = forced.current.reshape(count, *layer.shape).numpy() * steps / unit
        total = integer.sum(axis=0)
        far = np.broadcast_to(slack, whole).sum(axis=0) + NEARLY * (1 + np.abs(mine).max())
        assert np.all(np.abs(mine - total) <= far), layer.name
        return check_classes(mine, total, far)
    mine = forced.current.reshape(whole).numpy() / unit
    far = np.broadcast_to(slack, whole) + NEARLY * (1 + np.abs(mine).max())
    assert np.all(np.abs(mine - integer) <= far), layer.name
    return check_neuron(layer, forced, mine, far, unit)


def check_classes(mine: np.ndarray, total: np.ndarray, far: np.ndarray) -> int:
    flat, sums, bound = (x.reshape(len(x), -1) for x in (mine, total, far))
    rows = np.arange(len(flat))
    chosen, wanted = sums.argmax(axis=1), flat.argmax(axis=1)
    lead = flat[rows, wanted] - flat[rows, chosen]
    assert np.all(lead <= bound[rows, wanted] + bound[rows, chosen])
    return int(np.sum(chosen != wanted))


def check_neuron(
    layer: Layer, forced: Forced, current: np.ndarray, far: np.ndarray, unit: np.ndarray
) -> int:
    """The module's recurrence, on the integer network's levels: each of these must be its own, or
    a threshold must lie within the rounding."""
    neuron, module = layer.neuron, forced.population.neuron
    assert neuron is not None
    assert module is not None
    assert forced.trace.levels is not None
    gamma = module.gamma.detach().double().item()
    step = gamma / unit
    theta, reset = (x.reshape(-1, 1, 1) for x in (neuron.theta, neuron.reset))
    beta = float(module.beta) if module.stateful else 0.0
    assert np.all(np.abs(theta - np.maximum(step, 1.0)) <= 0.5 + NEARLY * step)
    assert np.all(np.abs(reset - float(module.alpha) * step) <= 0.5 + NEARLY * step)
    assert abs(neuron.decay / 2**neuron.decay_bits - beta) <= 2.0**-9
    v, error, changed = np.zeros(current.shape[1:]), np.zeros(current.shape[1:]), 0
    for t, levels in enumerate(forced.trace.levels):
        leak = abs(neuron.decay / 2**neuron.decay_bits - beta) * (np.abs(v) + error)
        error = beta * error + leak + (neuron.decay_bits > 0) + far[t]
        u = beta * v + current[t]
        own = np.clip(np.floor(u / step), 0, neuron.capacity)
        for k in range(1, neuron.capacity + 1):
            differ = (own >= k) != (levels >= k)
            changed += int(differ.sum())
            near = np.abs(u - k * step) <= error + k * np.abs(theta - step) + NEARLY * (
                1 + k * step
            )
            assert np.all(near | ~differ), layer.name
        v = u - float(module.alpha) * step * (levels > 0)
        error = error + np.abs(reset - float(module.alpha) * step)
    return changed


def check(seed: int, bits: int) -> tuple[Counter[str], int, int]:
    """Assert that a drawn module and its export are one function; its structures, the number of
    levels in all and of those that rounding changed."""
    module, spec, structures = (draw if seed % LINES else draw_line)(seed)
    ready = prepare(module.double(), spec, weight_bits=bits)
    network = integer_network(ready, spec, most_different=1)
    assert network.weight_bits == bits
    found = analyze(ready, spec)
    raw = agreement.samples(network, seed)[:12]
    tensors = {INPUT: IntegerNetwork(network).quantize(torch.from_numpy(raw))}
    changed = total = 0
    for forced in agreement.forced(found, ready, spec, network, raw, keep="all"):
        changed += check_layer(network, forced, tensors)
        levels = forced.trace.levels
        if levels is not None:
            layer = network.by_name[forced.population.name]
            whole = torch.tensor(levels.astype(np.int64))
            tensors[layer.name] = max_pool(whole, layer.pool) if layer.pool else whole
            total += levels.size
    return Counter(set(structures)), total, changed


@pytest.mark.parametrize(
    "first",
    [
        *range(0, QUICK, SHARE),
        *(pytest.param(first, marks=pytest.mark.slow) for first in range(QUICK, MODULES, SHARE)),
    ],
)
@pytest.mark.filterwarnings("ignore::lbq_hw.train.export.ExportWarning")
def test_random_modules_are_deployed_as_they_were_prepared(first):
    structures: Counter[str] = Counter()
    total = changed = 0
    for seed in range(first, first + SHARE):
        found, levels, different = check(seed, BITS[seed % len(BITS)])
        structures += found
        total, changed = total + levels, changed + different
    assert total
    assert {"several paths", "pre-activation", "pooled path", "pixel skip"} <= structures.keys()
    assert {"depthwise", "join", "padding", "dilation", "joined currents"} <= structures.keys()
    assert {"groups", "lines"} <= structures.keys()
