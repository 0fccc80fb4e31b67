"""Neurons as Triton kernels: alone, and fused with the norms and the sum before them.

`recurrence`, `continued` (any number of timesteps) and `normed` describe what is computed; files
that end in ``_jit`` hold the kernels. `fuse` puts the kernels of `normed` into a model.
"""
