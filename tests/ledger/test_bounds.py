"""Bounds as a law: whatever is stored already, windows are opened around it, and time is in one piece."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from duly.ledger.bounds import Coming, Opening, Range, Row, chain
from duly.schedule.occurrence import Occurrence


@st.composite
def walks(draw: st.DrawFn) -> tuple[Coming, int, list[Row]]:
    """Windows that have come due, where the line is open until, and rows that other rules of the zone made."""
    edges = sorted(draw(st.sets(st.integers(0, 40), min_size=2, max_size=10)))
    windows = [Occurrence(end, start, end, end, "exact") for start, end in pairwise(edges)]
    cuts = sorted(draw(st.sets(st.integers(0, 45), max_size=8)))
    names = draw(st.permutations(range(1, 45)))
    stored = [Row(name, start, end) for name, (start, end) in zip(names, pairwise(cuts), strict=False)]
    rows = [row for row in stored if draw(st.booleans())]
    opened_until = draw(st.integers(windows[0].start - 3, windows[0].end - 1))
    last = draw(st.integers(1, len(windows)))
    following = windows[last] if last < len(windows) else None
    return Coming(windows[:last], [], following), opened_until, rows


def opened(coming: Coming, opened_until: int, rows: list[Row], ranges: list[Range] | None = None) -> Opening:
    return chain(coming, opened_until, sorted(rows, key=lambda row: row.start or 0), ranges or [])


@given(walks())
def test_nothing_is_opened_over_what_is_stored_nor_before_the_place(walk: tuple[Coming, int, list[Row]]) -> None:
    coming, opened_until, rows = walk

    opening = opened(*walk)

    spans = [(row.start or 0, row.end or 0) for row in rows]
    fresh = [(o.start, o.end) for o in opening.fresh if o.start < o.end]
    assert all(start >= opened_until for start, _ in fresh)
    assert all(one[1] <= other[0] or other[1] <= one[0] for one in fresh for other in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(fresh))
    assert [o.nominal for o in opening.fresh] == [
        o.nominal for o in coming.windows if o.nominal not in {row.nominal for row in rows}
    ]


@given(walks())
def test_without_strangers_time_is_in_one_piece_up_to_the_new_place(walk: tuple[Coming, int, list[Row]]) -> None:
    coming, opened_until, _ = walk
    named = coming.windows[1::2]  # some were named ahead, under the rules of today
    rows = [Row(o.nominal, max(o.start, opened_until), o.end) for o in named]

    opening = opened(coming, opened_until, rows)

    pieces = sorted([(o.start, o.end) for o in opening.fresh] + [(row.start or 0, row.end or 0) for row in rows])
    assert pieces[0][0] == opened_until
    assert all(one[1] == other[0] for one, other in pairwise(pieces))
    assert opening.until == pieces[-1][1]
