"""``python -m tools.results``: hands over to `tools.results.command`."""

import sys

from tools.results.command import main

if __name__ == "__main__":
    sys.exit(main())
