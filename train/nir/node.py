"""NIR's neurons, which are equations in continuous time, as updates per timestep.

With Euler's method and a timestep dt, in units of the current and relative to the resting
potential::

    IF        U[t] = V[t-1] + r dt I[t]
    LIF       U[t] = (1 - dt / tau) V[t-1] + r dt / tau I[t]
    CubaLIF   as LIF, with w_in I for I, where tau_syn = dt: its synapse then has no memory

In NIR, a membrane must pass its threshold and is then set to v_reset. Up to version 1.0.4, the
threshold was subtracted instead, and files of these versions have no v_reset. Frameworks differ
from both, so a `Reading` says what is meant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import nir
import numpy as np
from numpy.typing import NDArray

from lbq_hw.train.frameworks.rules import per_channel, uniform
from lbq_hw.train.graph import RefusalError
from lbq_hw.train.neurons import Spiking

Reset = Literal["zero", "subtract", "late"]
RESETS = ("zero", "subtract", "late")
CLOSE = 1e-6  # relative: time constants are quotients of floats


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The interpretation of a graph's neurons.

    Members: `dt`, a timestep in the graph's unit of time; `reset` "zero" (to v_reset), "subtract"
    (the threshold, at once) or "late" (the threshold, after the leak of the next timestep, as in
    snnTorch); `strict`, whether a membrane must pass its threshold, not just reach it; `clamp`, the
    smallest membrane after a timestep, in the graph's unit of v_threshold, or None.
    """

    dt: float
    reset: Reset
    strict: bool
    clamp: float | None = None

    def neuron(self, node: nir.NIRNode) -> Spiking:
        """The neuron of a node; RefusalError if it has no exact form."""
        if isinstance(node, nir.IF):
            return self._spiking(node, beta=1.0, gain=node.r * self.dt, rest=None)
        if isinstance(node, nir.LIF):
            tau = uniform(node.tau, "tau", "use one time constant per layer")
            return self._leaky(node, tau, node.r)
        assert isinstance(node, nir.CubaLIF)
        tau_syn = uniform(node.tau_syn, "tau_syn", "use one time constant per layer")
        if not np.isclose(tau_syn, self.dt, rtol=CLOSE, atol=0.0):
            raise RefusalError(
                f"its synapse has dynamics (tau_syn is {tau_syn / self.dt:g} timesteps)",
                "use LIF, or a tau_syn of one timestep",
            )
        tau = uniform(node.tau_mem, "tau_mem", "use one time constant per layer")
        return self._leaky(node, tau, node.r * node.w_in * (self.dt / tau_syn))

    def _leaky(self, node: Any, tau: float, r: NDArray[Any]) -> Spiking:
        rate = self.dt / tau if tau > 0 else math.inf
        if not 0 < rate <= 1 + CLOSE:
            raise RefusalError(
                f"its time constant is {tau / self.dt:g} timesteps, less than 1",
                "give the dt with which it was trained",
            )
        return self._spiking(node, beta=max(0.0, 1.0 - rate), gain=r * rate, rest=node.v_leak)

    def _spiking(
        self, node: Any, *, beta: float, gain: NDArray[Any], rest: NDArray[Any] | None
    ) -> Spiking:
        zero = self.reset == "zero"
        base = node.v_reset if zero else np.zeros_like(node.v_threshold)
        if rest is not None and not np.array_equal(rest, base):
            raise RefusalError(
                f"its membrane leaks to v_leak, and not to {'v_reset' if zero else '0'}",
                "train it with v_leak = v_reset = 0",
            )
        if not np.all(gain > 0):
            raise RefusalError("its r is not above 0", "put the sign into the weights")
        limit = (node.v_threshold - base) / gain
        if not np.all(limit > 0):
            raise RefusalError(
                "its threshold is not above its resting potential",
                "train it with a higher threshold",
            )
        if self.reset == "late" and beta == 0.0:
            raise RefusalError("it subtracts from a membrane that has leaked away", "reset to zero")
        return Spiking(
            threshold=per_channel(limit, "threshold"),
            floor=self._floor(base, gain),
            beta=beta,
            to_zero=zero,
            strict=self.strict,
            late=self.reset == "late" and beta != 1.0,
        )

    def _floor(self, base: NDArray[Any], gain: NDArray[Any]) -> float | list[float] | None:
        """The clamp relative to the resting potential, in units of the current."""
        if self.clamp is None:
            return None
        if self.reset == "late":
            raise RefusalError(
                "it subtracts after the next leak, so its membrane cannot be clamped before",
                "give --reset zero or subtract, or no --clamp",
            )
        floor = (self.clamp - base) / gain
        if not np.all(floor <= 0):
            raise RefusalError(
                f"its membrane rests below the clamp of {self.clamp:g}", "give a lower --clamp"
            )
        return per_channel(floor, "clamp")


def default_dt(graph: nir.NIRGraph) -> float:
    """The default timestep of a graph: 1 if every neuron is IF with r = 1, as sinabs writes them;
    else 1e-4, as in snnTorch, SpikingJelly and most others.
    """
    nodes = graph.nodes.values()
    leaky = any(isinstance(node, nir.LIF | nir.CubaLIF) for node in nodes)
    whole = all(np.all(node.r == 1) for node in nodes if isinstance(node, nir.IF))
    return 1.0 if whole and not leaky else 1e-4
