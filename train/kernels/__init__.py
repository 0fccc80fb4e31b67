"""Neurons as Triton kernels: alone, and in one with the norms and the sum before them.

`recurrence` and `normed` say what is computed; files that end in ``_jit`` hold the kernels. `fuse`
puts the second kind into a model.
"""
