"""``python -m tools.bench_gpu``: hands over to `tools.bench_gpu.command`."""

import sys

from tools.bench_gpu.command import main

if __name__ == "__main__":
    sys.exit(main())
