"""``python -m train.bench_gpu``: hands over to `lbq_hw.train.bench_gpu.command`."""

import sys

from lbq_hw.train.bench_gpu.command import main

if __name__ == "__main__":
    sys.exit(main())
