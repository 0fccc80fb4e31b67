"""Which variant of each block a core has: the one place where the profile decides."""

from collections.abc import Sequence

from lbq_hw.config import CoreConfig, Profile
from lbq_hw.core.external.tape_host_port import TapeHostPort
from lbq_hw.core.host.port import HostPort
from lbq_hw.core.host.spread_port import SpreadHostPort
from lbq_hw.core.lanes.lane_array import LaneArray
from lbq_hw.core.lanes.spread_lanes import PairLanes, SpreadLanes, TapeLanes
from lbq_hw.core.memory.planes import PlaneMemory, SpreadPlanes
from lbq_hw.core.memory.writer import CompactWriter, Writer
from lbq_hw.core.neurons.compact_neurons import CompactNeurons
from lbq_hw.core.neurons.neuron_array import NeuronArray
from lbq_hw.core.neurons.partial_neurons import PartialNeurons
from lbq_hw.core.neurons.rules import rules_of
from lbq_hw.core.payload import LayerInfo, StepInfo
from lbq_hw.core.scan.scanner import Scanner
from lbq_hw.core.scan.spread_scanner import PairScanner, SpreadScanner

__all__ = ["host_port", "lane_array", "neuron_array", "plane_memory", "scanner", "writer"]


def host_port(config: CoreConfig) -> type[HostPort]:
    """The class of the host port."""
    if config.external:
        return TapeHostPort
    return SpreadHostPort if config.spread else HostPort


def plane_memory(config: CoreConfig) -> PlaneMemory:
    """The activation memory."""
    kind = SpreadPlanes if config.spread else PlaneMemory
    c = config
    return kind(word=c.word, summary=c.summary, words=c.plane_words, granule=c.granule)


def scanner(config: CoreConfig) -> Scanner:
    """The scanner, which reads the activation memory."""
    c, kind = config, Scanner
    if config.spread:
        kind = PairScanner if config.pairs else SpreadScanner
    return kind(
        lanes=c.lanes,
        word=c.word,
        summary=c.summary,
        words=c.plane_words,
        rows=c.weight_rows,
        granule=c.granule,
        exponent_bits=c.exponent_bits,
        identities=c.identities > 0,
    )


def lane_array(config: CoreConfig, *, init: Sequence[int] = ()) -> LaneArray:
    """Weight memory and lanes."""
    c, kind = config, LaneArray
    if config.external:
        kind = PairLanes if config.pairs else TapeLanes
    elif config.spread:
        kind = SpreadLanes
    return kind(
        lanes=c.lanes,
        rows=c.weight_rows,
        weight_bits=c.weight_bits,
        acc_bits=c.acc_bits,
        masks=c.identities > 0,
        init=init,
    )


def neuron_array(
    config: CoreConfig, *, layer: LayerInfo, step: StepInfo, init: Sequence[Sequence[int]] = ()
) -> NeuronArray:
    """The neuron units."""
    c = config
    sizes = {
        "lanes": c.lanes,
        "units": c.units,
        "acc_bits": c.acc_bits,
        "membrane_bits": c.membrane_bits,
        "timesteps": c.timesteps,
        "tiles": c.param_tiles,
        "layer": layer,
        "step": step,
        "pools": c.window > 1,
        "rules": rules_of(c),
        "resets": c.resets > 0,
        "init": init,
    }
    if config.external:
        return PartialNeurons(**sizes, partial_words=c.partial_words, partial_bits=c.partial_bits)
    return CompactNeurons(**sizes) if c.profile is Profile.COMPACT else NeuronArray(**sizes)


def writer(config: CoreConfig, *, layer: LayerInfo, step: StepInfo) -> Writer:
    """The writer of the planes that the neuron units of this core produce."""
    kind = CompactWriter if config.profile is Profile.COMPACT else Writer
    return kind(
        lanes=config.lanes,
        word=config.word,
        plane_bits=config.plane_address_bits,
        write=step["write"].shape,
        layer=layer,
    )
