"""Where a search can run: one module for each engine, found by name; see ``engines.base``."""

from __future__ import annotations

from importlib import import_module

from oocbfs.engines.base import Engine

# Engines by name and the modules that they are in, which are imported when they are asked for.
MODULES = {
    "cpu": "cpu",
    "disk": "disk",
    "point": "point",
    "cuda": "gpu",
    "emulator": "gpu",
    "devices": "devices",
    "shards": "shards",
    "lab": "lab",
}


def engine_named(name: str) -> Engine:
    """Return an engine."""
    engine: Engine = import_module(f"{__name__}.{MODULES[name]}").ENGINES[name]
    return engine
