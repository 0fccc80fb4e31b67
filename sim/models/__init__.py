"""Plain Python models of the blocks of the core, and random traffic for them.

Shared by the tests in Amaranth's simulator and by the testbenches under cocotb.
"""
