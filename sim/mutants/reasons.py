"""Why faults are found by nothing: written by hand, for the line and the bit of each.

A fault that survives and is not here has no explanation yet.
"""

from __future__ import annotations

from lbq_hw.sim.mutants.faults import Fault

__all__ = ["reason"]

_SAME = "The same bit is exchanged where membranes are written and read: groups swap their places."
_WAITS = "In the cycle after a start only, the host's port waits a cycle longer; no result changes."
_COUNTS = "No test counts so far."
_RESET = "The register is set before it is used, so that it needs no reset."
_LONG = "With this core's groups, an update takes longer than the loop of a membrane."
_SHORT = "In this core, rows are too short for runs of so many spans."
_REASONS = {
    ("lbq_hw/core/neurons/level_collector.py:44", "neurons.at[1].group[0]", "inv"): _SAME,
    ("lbq_hw/core/neurons/level_collector.py:44", "neurons.at[1].group[1]", "inv"): _SAME,
    ("lbq_hw/core/walk/walker.py:108", "o_done[0]", "const1"): _WAITS,
    ("lbq_hw/core/walk/walker.py:124", "SRST[0]", "const0"): _RESET,
    ("lbq_hw/core/host/registers.py:195", "Y[29]", "cnot1"): _COUNTS,
    ("lbq_hw/core/host/registers.py:195", "Y[22]", "cnot1"): _COUNTS,
    (
        "lbq_hw/core/host/registers.py:191", "host.registers.count_empty_requests[15]", "const0",
    ): _COUNTS,
    ("lbq_hw/core/walk/requests.py:217", "Y[0]", "const0"): _SHORT,
    ("lbq_hw/core/walk/requests.py:187", "Y[7]", "const0"): _SHORT,
    ("lbq_hw/core/walk/loops.py:129", "A[3]", "const0"):
        "A window ends at the last column, so that no position lies beyond it.",
    ("lbq_hw/core/walk/requests.py:62", "walker.requests.i__payload[27]", "cnot1"):
        "A run above the plane is taken for one below it, and neither adds anything.",
    ("lbq_hw/core/host/registers.py:123", "B[6]", "cnot0"):
        "Without an error, the register has the number of a layer, which has no such bit.",
    ("lbq_hw/core/scan/fetch.py:164", "SRST[0]", "const0"):
        "No test resets a core with external memory in the middle of a run.",
    ("lbq_hw/core/neurons/partial_updates.py:57", "core.neurons.updates.$like[2]", "cnot1"): _LONG,
    ("lbq_hw/core/neurons/partial_updates.py:61", "A[2]", "const1"): _LONG,
    ("lbq_hw/core/external/tape_reader.py:219", "A[17]", "cnot1"):
        "Only an address with two wrong bits is taken for the END of a tape.",
    ("lbq_hw/core/walk/step_infos.py:126", "core.walker.infos.bit[1]", "cnot0"):
        "Chunks are aligned to granules, and the bit is below a granule.",
    ("lbq_hw/core/walk/layer_loader.py:191", "A[0]", "const0"):
        "After a record, its table is read on, and the data are not used.",
    ("lbq_hw/core/neurons/partial_updates.py:92", "core.neurons.updates.turns_1[0]", "const1"):
        _LONG,
    ("lbq_hw/core/neurons/neuron_unit.py:188", "S[0]", "const0"):
        "No network that was tried doubles a sum of as many bits.",
    ("lbq_hw/core/external/tape_reader.py:207", "A[30]", "cnot1"):
        "No tape has two million slices.",
    ("lbq_hw/core/stream/queue.py:63", "A[2]", "const1"):
        "No more words are read than the queue has room for.",
    ("lbq_hw/core/walk/path_store.py:209", "core.walker.load__record[93]", "const0"):
        "The lower bound of columns is even in all programs of the compiler.",
    ("lbq_hw/core/scan/fetch.py:197", "core.scanner.fetch.$signal$25[30]", "cnot1"):
        "The lanes of an identity begin at a granule, so that the other bit is always 0.",
    ("lbq_hw/core/memory/planes.py:158", "core.planes.read__en[0]", "const1"):
        "A word is taken in the cycle in which it comes, so that it need not stay.",
}  # fmt: skip
"""By the line of the source, the wire or else the cell's port, and what is done to the bit."""


def reason(fault: Fault) -> str | None:
    """Why nothing finds a fault, if somebody has found out."""
    bit = fault.wire or f"{fault.port}[{fault.bit}]"
    return _REASONS.get((fault.source, bit, fault.mode))
