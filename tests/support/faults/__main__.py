"""Run commands with failing calls: ``python -m tests.support.faults --help``."""

import sys

from tests.support.faults.faults import main

if __name__ == "__main__":
    sys.exit(main())
