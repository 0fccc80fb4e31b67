"""What a recording would cost a core that pays for events: visits, cycles and memory, before RTL.

`visits` finds where each layer has something to do at each timestep, `ways` how many cycles that
takes if nothing else is executed, `memory` how many bits are kept on the chip, and `measured` puts
the numbers of several recordings together. ``python -m lbq_hw.event_time --help``;
docs/event-time.md has the plan that rests on them.
"""
