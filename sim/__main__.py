"""``python -m sim``: hands over to `lbq_hw.sim.command`."""

import sys

from lbq_hw.commands import ending
from lbq_hw.sim.command import main

if __name__ == "__main__":
    sys.exit(ending.run(main))
