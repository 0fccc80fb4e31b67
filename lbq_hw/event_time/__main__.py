import sys

from lbq_hw.commands import ending
from lbq_hw.event_time.command import main

if __name__ == "__main__":
    sys.exit(ending.run(main))
