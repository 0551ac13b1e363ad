"""Which outputs have their names already: who is interrupted afterwards must not deny them."""

from __future__ import annotations

import os

# As users call them, where they are, and which files they are; None where nobody will ask.
_named: list[tuple[str, str, os.stat_result]] | None = None


def begin() -> None:
    """Forget what appeared before, and take notes from now on."""
    global _named
    _named = []


def will_appear(shown: str, target: str | os.PathLike[str], temporary: os.stat_result) -> None:
    """Note that a file or a folder is about to be renamed to its target."""
    if _named is not None:
        _named.append((shown, os.fspath(target), temporary))


def appeared() -> list[str]:
    """Return the outputs that have their names; a signal may come before and after any rename."""
    return [shown for shown, target, temporary in _named or () if _is_there(target, temporary)]


def _is_there(target: str, temporary: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(target), temporary)
    except OSError:
        return False
