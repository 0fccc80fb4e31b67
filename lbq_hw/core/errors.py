"""Error codes as the hardware has them."""

from amaranth.lib import enum

from lbq_hw import isa

__all__ = ["ErrorCode"]


class ErrorCode(enum.IntEnum, shape=5):
    """The codes of `isa.Error`, with room for as many again."""

    NONE = isa.Error.NONE.value
    BUSY = isa.Error.BUSY.value
    ADDRESS = isa.Error.ADDRESS.value
    LAYER = isa.Error.LAYER.value
    PATH = isa.Error.PATH.value
    SEGMENT = isa.Error.SEGMENT.value
    RUN = isa.Error.RUN.value
    PLANE = isa.Error.PLANE.value
    WEIGHT = isa.Error.WEIGHT.value
    LOGIT = isa.Error.LOGIT.value
    PARAM = isa.Error.PARAM.value
    TAPE = isa.Error.TAPE.value
    CRC = isa.Error.CRC.value
    ORDER = isa.Error.ORDER.value
    MEMORY = isa.Error.MEMORY.value
    PARTIAL = isa.Error.PARTIAL.value
