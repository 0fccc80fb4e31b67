"""Neurons as Triton kernels: alone, and in one with the norms and the sum before them.

`recurrence`, `continued` (any number of timesteps) and `normed` say what is computed; files that
end in ``_jit`` hold the kernels. `fuse` puts the last kind into a model.
"""
