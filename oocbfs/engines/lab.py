"""The methods of the papers, on one core, on a GPU or in the emulator: ``--method``.

The door to ``oocbfs.methods``: but for ``ablate`` and ``doctor``, the rest knows no other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from oocbfs.engines.base import Engine
from oocbfs.engines.choice import choose_engine
from oocbfs.methods import METHODS, parse_method
from oocbfs.query import Output, Query, Run
from oocbfs.settings import Engine as EngineName
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph


class _Lab(Engine):
    def settle(self, settings: Settings) -> Settings:
        engine = choose_engine(settings.engine, settings).engine
        method = parse_method(settings.method)
        method.check_engine(engine)
        return replace(settings, engine=cast(EngineName, engine), method=str(method))

    def refusal(self, graph: StoredGraph, settings: Settings) -> str | None:
        method = parse_method(settings.method)
        for name, given in (
            ("direction", settings.direction != "auto"),
            ("resident-tails", settings.resident_tails is not None),
            ("memory", settings.memory is not None),
        ):
            if given:
                return f"method {method.name} knows no --{name}: leave it out"
        if settings.devices is not None:
            return f"method {method.name} runs on one GPU: leave out --devices"
        return None

    def run(self, graph: StoredGraph, query: Query, out: Output, settings: Settings) -> Run:
        method = parse_method(settings.method)
        if settings.engine == "cpu":
            from oocbfs.methods.on_cpu import run_on_cpu

            return run_on_cpu(graph, method, query, out)
        from oocbfs.methods.on_device import run_on_device

        return run_on_device(graph, method, query, out, settings)


ENGINES = {"lab": _Lab("lab")}

__all__ = ["ENGINES", "METHODS"]
