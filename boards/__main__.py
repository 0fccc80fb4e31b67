"""``python -m boards``: hands over to `lbq_hw.boards.command`."""

import sys

from lbq_hw.boards.command import main

if __name__ == "__main__":
    sys.exit(main())
