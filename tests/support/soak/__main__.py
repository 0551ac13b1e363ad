"""Run the soak: ``scripts/soak --help``."""

import sys

from tests.support.soak.soak import main

if __name__ == "__main__":
    sys.exit(main())
