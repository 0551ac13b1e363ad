"""``python -m oocbfs``."""

import sys

from oocbfs.cli import main

sys.exit(main())
