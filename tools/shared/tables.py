"""Which columns of a table hold the two ends of an edge, or of a pair: declared once."""

from __future__ import annotations

import argparse

from oocbfs.formats.readers.table import NAMES
from oocbfs.formats.tables.columns import make_options
from oocbfs.tools.shared import options as shared

# The options that a table is described by, by their names in Python.
COLUMNS = ("columns", "delimiter", "header")


def _columns(text: str) -> str:
    """Check which columns are asked for."""
    return shared.checked(text, lambda text: make_options(columns=text))


def _delimiter(text: str) -> str:
    """Check a delimiter."""
    return shared.checked(text, lambda text: make_options(delimiter=text))


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Declare the format of inputs, and which columns are taken."""
    parser.add_argument(
        "--format", choices=NAMES, help="format of the inputs (default: recognised by content)"
    )
    shared.add_value(
        parser,
        "--columns",
        _columns,
        "SOURCE,TARGET",
        "which columns of a table hold the edges, by name or number, from 1 (default: those with "
        "usual names, or the first two of a text without names)",
    )
    ends = "what ends a field of a text, such as ';' or '\\t' (default: by the first line)"
    shared.add_value(parser, "--delimiter", _delimiter, "CHARACTER", ends)
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first line of a text has, or has not, the names of columns (default: looked at)",
    )


def add_where(parser: argparse.ArgumentParser) -> None:
    """Declare which rows are taken."""
    shared.add_value(
        parser,
        "--where",
        lambda text: shared.checked(text, lambda text: make_options(where=text)),
        "CONDITION",
        "rows of tables that are edges, such as \"type = 'friend' and since >= '2025-06-01'\" "
        "(default: all)",
    )
