"""What each block of the core must do, in plain Python, and random traffic for it.

Shared by the tests in Amaranth's simulator and by the testbenches under cocotb.
"""
