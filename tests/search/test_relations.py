"""What changes in a graph changes its answers as it must: relations that need no other program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.exhaustive import crossing
from tests.support.relations import ENGINES, KINDS, RELATIONS, Case
from tests.support.strategies import ORDERS

_SCALES = {"cpu": 13, "disk": 12, "emulator": 8}


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.__name__)
@pytest.mark.parametrize(
    ("kind", "engine", "order", "directed"),
    crossing(KINDS, ENGINES, ORDERS, (False, True)),
    ids=str,
)
def test_relations(
    relation: Callable[[Case], None], kind: str, engine: str, order: str, directed: bool
) -> None:
    relation(Case(kind, _SCALES[engine], engine, order, directed))
