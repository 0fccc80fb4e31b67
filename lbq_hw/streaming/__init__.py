"""The streaming core: what it is built for, what it executes, and how many cycles that takes.

Time is the outermost loop: one step of all layers, then the next. Membranes lie in memory from one
step to the next, and only positions that have something to do are visited. docs/event-time.md has
the reasons; `lbq_hw.core.streaming` is the circuit.

=========  =========================================================================
config     `StreamConfig`: lanes, widths and memories of one core
records    the LAYER and PATH records, and the regions of the host's port
program    `StreamProgram`: what the memories of a core hold for one network
compiler   network -> program, and the smallest core for it
machine    executes a program step by step, as the core does
cycles     the cycles of a step, exactly
=========  =========================================================================
"""
