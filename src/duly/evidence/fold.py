"""Folding: what is many of one line and in one state is one row, with how many, from which to which, and why."""

from __future__ import annotations

from duly.evidence.shown import window_name
from duly.evidence.verdict import Window

FEW = 3  # windows of one line in one state that are shown one by one


def folded(windows: list[Window], *, unfold: bool = False) -> list[list[Window]]:
    """The windows in groups, in the order of their first: more than a few of one line in one state together, others alone."""
    groups: dict[tuple[str, str, str, str], list[Window]] = {}
    for window in windows:
        groups.setdefault((window.key.job, window.key.scope, window.verdict.word, window.verdict.verb), []).append(
            window
        )
    many = {name for name, group in groups.items() if len(group) > FEW and not unfold}
    shown: list[list[Window]] = []
    for window in windows:
        name = window.key.job, window.key.scope, window.verdict.word, window.verdict.verb
        if name not in many:
            shown.append([window])
        elif groups[name][0] is window:
            shown.append(groups[name])
    return shown


def range_name(group: list[Window]) -> str:
    """From which window to which, in time."""
    first, last = min(group, key=_time), max(group, key=_time)
    return f"{window_name(first)} to {window_name(last)}"


def _time(window: Window) -> int:
    return window.bounds[0] if window.bounds is not None else window.due or 0


def reasons(group: list[Window]) -> str:
    """Why they are what they are: the most frequent reasons, with how many have each."""
    from collections import Counter

    notes = Counter(window.verdict.note for window in group if window.verdict.note)
    if len(notes) == 1 and sum(notes.values()) == len(group):
        return next(iter(notes))
    told = [f"{note} ({number})" for note, number in notes.most_common(2)]
    return ", ".join([*told, "…"] if len(notes) > len(told) else told)
