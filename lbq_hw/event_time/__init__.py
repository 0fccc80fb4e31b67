"""Estimates for a core whose cost follows the events of a recording: visits, cycles and memory.

`visits` finds the positions with work in each layer at each timestep, `ways` the cycles if only
these positions are executed, and `memory` the bits that stay on the chip. `measured` combines the
numbers of several recordings. ``python -m lbq_hw.event_time --help``; docs/event-time.md has the
plan that is based on them.
"""
