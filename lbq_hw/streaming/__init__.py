"""The streaming core: its configuration, its programs, its compiler, and its cycles.

Time is the outermost loop: one step of all layers, then the next step. Membranes stay in memory
from one step to the next, and only output positions with work to do are visited. docs/event-time.md
has the reasons; `lbq_hw.core.streaming` has the hardware.

=========  =========================================================================
config     `StreamConfig`: lanes, widths and memories of one core
records    the LAYER and PATH records, and the regions of the host's port
program    `StreamProgram`: the memory contents of a core for one network
compiler   network -> program, and the smallest core for it
machine    executes a program step by step, as the core does
cycles     the cycles of a step, exactly
=========  =========================================================================
"""
