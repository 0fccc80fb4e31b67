"""Sound as levels: what a network for speech gets, in integers that an FPGA computes too."""

from lbq_hw.audio.filter_bank import BANDS, FRAME, LEVELS, RATE, Band, FilterBank
from lbq_hw.audio.memory import GAP, ROWS, remembered

__all__ = [
    "BANDS",
    "FRAME",
    "GAP",
    "LEVELS",
    "RATE",
    "ROWS",
    "Band",
    "FilterBank",
    "remembered",
]
