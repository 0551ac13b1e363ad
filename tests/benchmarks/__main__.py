"""``scripts/bench NAME``: run one benchmark."""

import sys
from importlib import import_module
from pathlib import Path

NAMES = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "__main__", "common")
)

if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
    sys.exit(f"usage: scripts/bench {{{','.join(NAMES)}}} [--help]")
import_module(f"tests.benchmarks.{sys.argv[1]}").main(sys.argv[2:])
