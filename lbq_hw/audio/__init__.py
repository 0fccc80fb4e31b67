"""Sound as levels: the input of a network for speech, in integers that an FPGA can compute."""

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
