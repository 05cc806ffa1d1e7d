"""Status looks at so many windows of each line that all lines together are looked at in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.evidence import status as views
from duly.evidence.status import LOOK_AT_LEAST, LOOK_AT_MOST, LOOK_IN_ALL, look_at_most, status
from tests.books import Book


@pytest.mark.parametrize("lines", [0, 1, 20, 21, 1_000, 1_001, 100_000])
def test_many_lines_share_what_is_looked_at(lines: int) -> None:
    each = look_at_most(lines)

    assert LOOK_AT_LEAST <= each <= LOOK_AT_MOST
    assert lines * each <= max(LOOK_IN_ALL, lines * LOOK_AT_LEAST)


def test_more_than_is_looked_at_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "LOOK_IN_ALL", 0)
    book = Book(tmp_path / "jobs.db")
    for name in ("a", "b"):
        book.job(name)
        book.poke(name)
    book.clock.advance(f"{LOOK_AT_LEAST + 5}d")

    seen = book.store.read(status())

    assert [(len(each.windows), each.more) for each in seen.unopened] == [(LOOK_AT_LEAST, True)] * 2


@pytest.mark.parametrize("policy", ["each", "each max=2", "each max_age=3d", "latest"])
def test_what_the_next_poke_will_skip_is_what_it_skips(tmp_path: Path, policy: str) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job(catch_up=policy)
    book.poke()
    book.clock.advance("10d")
    (asleep,) = book.store.read(status()).unopened

    book.work_all()

    skipped = sum(state == "skipped" for _, state in book.runs())
    in_ranges = book.rows("select coalesce(sum((to_nominal - from_nominal) / (2 * 86400)), 0) from duly_skipped")[0][0]
    assert asleep.skipped == skipped + in_ranges
