"""Run the fuzzer: ``python -m tests.support.fuzzing --help``."""

import sys

from tests.support.fuzzing.fuzz import main

if __name__ == "__main__":
    sys.exit(main())
