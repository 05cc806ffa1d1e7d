"""Facts of zones: the release that is read, and fingerprints that tell what its rules mean around a window."""

from __future__ import annotations

import struct
import zoneinfo
from pathlib import Path

import pytest

from duly.schedule import spec
from duly.schedule.facts import (
    Release,
    changes,
    changes_back,
    disagreement,
    facts_of,
    fingerprint,
    release_in_use,
)
from duly.schedule.spec import Schedule
from duly.testing.releases import reading
from duly.times import HOUR, Zone, instant_text, parse_instant

BERLIN = "Europe/Berlin"


def print_of(zone: str, window: str, *, schedule: Schedule | None = None) -> str:
    """The fingerprint of a day of the zone, under the release being read."""
    found = (schedule or spec.daily(zone)).lookup(window)
    return fingerprint(Zone(zone), found.start, found.end)


# -- releases ------------------------------------------------------------------------------------------------------------


def test_the_pinned_package_is_what_tests_read() -> None:
    assert release_in_use(BERLIN) == Release("2026f", "tzdata package")


def test_a_folder_of_the_system_is_asked_first_and_says_its_release(tmp_path: Path) -> None:
    (tmp_path / "Europe").mkdir()
    (tmp_path / BERLIN).write_bytes(b"TZif")

    with reading(tmp_path):
        assert release_in_use(BERLIN) == Release("unknown", str(tmp_path))
        (tmp_path / "+VERSION").write_text("2019c\n")
        assert release_in_use(BERLIN) == Release("2019c", str(tmp_path))
        (tmp_path / "tzdata.zi").write_text("# version 2025b\nR d\n")
        assert release_in_use(BERLIN) == Release("2025b", str(tmp_path))
        assert release_in_use("Europe/Paris") == Release("2026f", "tzdata package"), "the folder does not have it"


def test_utc_needs_no_release() -> None:
    assert facts_of("UTC", 0, HOUR).release == Release("none", "none")


def test_a_real_release_is_named(releases: dict[str, Path]) -> None:
    with reading(releases["2023b"]):
        assert facts_of("Asia/Beirut", 0, HOUR).release == Release("2023b", str(releases["2023b"]))
    assert zoneinfo.TZPATH == ()


# -- changes -------------------------------------------------------------------------------------------------------------


def test_changes_are_found_to_the_second_and_back() -> None:
    zone = Zone("Africa/Monrovia")  # 44 minutes and 30 seconds, on 7 January 1972 at 00:44:30Z
    first, last = parse_instant("1970-01-01T00:00:00Z") // 10**6, parse_instant("1980-01-01T00:00:00Z") // 10**6

    assert [(instant_text(when * 10**6), offset) for when, offset in changes(zone, first, last)] == [
        ("1972-01-07T00:44:30Z", 0)
    ]
    assert [(instant_text(when * 10**6), offset) for when, offset in changes_back(zone, last, first)] == [
        ("1972-01-07T00:44:30Z", -2670)
    ]


@pytest.mark.parametrize(("after", "until", "found"), [(-1, 0, 1), (0, 1, 0), (-2, -1, 0), (-(10**7), 10**6, 1)])
def test_a_range_of_changes_is_open_at_its_beginning_and_closed_at_its_end(after: int, until: int, found: int) -> None:
    change = parse_instant("2026-10-25T01:00:00Z") // 10**6

    assert len(list(changes(Zone(BERLIN), change + after, change + until))) == found
    assert len(list(changes_back(Zone(BERLIN), change + until, change + after))) == found


# -- fingerprints --------------------------------------------------------------------------------------------------------


def fat(zone: str) -> bytes:
    """A zone's file as Debian has it: each transition until 2037 spelled out, where PyPI's ends with a rule (RFC 9636)."""
    since, until = -(2**31), 2**31 - 1
    found = [*changes(Zone(zone), since, until)]
    offsets = sorted({Zone(zone).offset_at(since), *(offset for _, offset in found)})
    kinds = bytes(offsets.index(offset) for _, offset in found)
    first = offsets.index(Zone(zone).offset_at(since))  # the kind before the first transition must come first
    order = [first, *(n for n in range(len(offsets)) if n != first)]
    kinds = bytes(order.index(kind) for kind in kinds)
    types = b"".join(struct.pack(">lBB", offsets[n], 0, 0) for n in order)
    header = b"TZif2" + bytes(15)
    parts = [
        block
        for size in ("l", "q")
        for block in (
            header + struct.pack(">6I", 0, 0, 0, len(found), len(offsets), 4),
            struct.pack(f">{len(found)}{size}", *(when for when, _ in found)),
            kinds + types + b"LMT\0",
        )
    ]
    return b"".join(parts) + b"\nCET-1CEST,M3.5.0,M10.5.0/3\n"


def test_the_same_rules_have_one_fingerprint_in_files_of_any_form(tmp_path: Path) -> None:
    days = ("1996-10-27", "2024-03-31", "2024-07-01", "2036-10-26")
    slim = [print_of(BERLIN, day) for day in days]
    (tmp_path / "Europe").mkdir()
    (tmp_path / BERLIN).write_bytes(fat(BERLIN))

    with reading(tmp_path):
        assert release_in_use(BERLIN).source == str(tmp_path)
        assert [print_of(BERLIN, day) for day in days] == slim

    assert len((tmp_path / BERLIN).read_bytes()) > 1500
    assert len(set(slim)) == len(days)


def test_rules_that_stayed_have_one_fingerprint_in_all_releases(releases: dict[str, Path]) -> None:
    prints = set()
    for folder in releases.values():
        with reading(folder):
            prints.add((print_of(BERLIN, "2024-03-31"), print_of("Asia/Kolkata", "2024-07-01")))

    assert len(prints) == 1


def test_a_rule_that_changes_shows_only_in_the_windows_that_it_reaches(releases: dict[str, Path]) -> None:
    """2023b moved Beirut's change of 26 March to 21 April; 2023c took that back."""
    days = ("2023-03-01", "2023-03-26", "2023-04-10", "2023-06-01")
    prints = {}
    for version in ("2023a", "2023b", "2023c"):
        with reading(releases[version]):
            prints[version] = [print_of("Asia/Beirut", day) for day in days]

    assert prints["2023a"] == prints["2023c"]
    assert [a == b for a, b in zip(prints["2023a"], prints["2023b"], strict=True)] == [True, False, False, True]


def test_a_change_counts_from_two_days_before_the_window_to_two_days_after_it() -> None:
    days = [f"2026-{day}" for day in ("10-21", "10-22", "10-23", "10-25", "10-27", "10-28")]

    prints = [print_of(BERLIN, day) for day in days]

    summer, change, winter = (
        print_of(BERLIN, "2026-07-01"),
        print_of(BERLIN, "2026-10-25"),
        print_of(BERLIN, "2026-12-01"),
    )
    assert prints == [summer, summer, change, change, change, winter]
    assert len({summer, change, winter}) == 3


def test_a_fingerprint_is_frozen() -> None:
    """It is stored: another way to make it would look like drift everywhere."""
    assert print_of(BERLIN, "2026-07-01") == "e6991be17c52eb2c"
    assert print_of(BERLIN, "2026-10-25") == "edd9d83b01c57fa3"
    assert facts_of("UTC", 0, HOUR).fingerprint == "af63ad4c86019caf"


# -- drift ---------------------------------------------------------------------------------------------------------------


def test_a_disagreement_is_put_in_words(releases: dict[str, Path]) -> None:
    days = spec.daily("Asia/Beirut")
    with reading(releases["2023b"]):
        stored = days.lookup("2023-03-26")
    with reading(releases["2023c"]):
        here = days.lookup("2023-03-26")

    assert disagreement(stored.start, stored.end, here) == (
        "end 2023-03-26T22:00:00Z is stored, 2023-03-26T21:00:00Z under the rules in use"
    )
    assert disagreement(here.start, here.end, here) == ""
    assert disagreement(here.start, here.end, None) == "no such time under the rules in use"
