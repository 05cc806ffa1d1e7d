"""Words: sets of them, as one reads them best."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text, to ask for one."""
    return frozenset(text.split())
