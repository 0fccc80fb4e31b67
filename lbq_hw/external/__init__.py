"""The budget of a network in external memory: ``python -m lbq_hw.external --help`` prints it.

`lbq_hw.compiler.passes` plans, `lbq_hw.chips` are the memories; docs/external-memory.md has the
design.
"""
