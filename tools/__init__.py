"""Programs for developers of the library; they are not part of the installed package.

| program | what it does |
| --- | --- |
| ``python -m tools.results docs/results`` | the results page and its figures, from JSON |
| ``python -m tools.bench`` | the golden model against PyTorch |
| ``python -m tools.bench_gpu`` | training steps and neuron kernels on a GPU |
"""
