"""``python -m train.results``: hands over to `lbq_hw.train.results.command`."""

import sys

from lbq_hw.train.results.command import main

if __name__ == "__main__":
    sys.exit(main())
