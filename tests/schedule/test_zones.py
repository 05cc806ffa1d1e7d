"""What the resolver believes of the database of zones."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import pytest

from duly.testing.releases import ReleaseMissing, release
from tests.conftest import RELEASES

DAY = 86_400


def transitions(tzif: bytes) -> list[tuple[int, int]]:
    """The seconds at which a zone's offset changes, each with the offset from then on, from its file (RFC 9636)."""
    is_ut, is_standard, leaps, times, types, characters = struct.unpack(">6I", tzif[20:44])
    second = 44 + times * 5 + types * 6 + characters + leaps * 8 + is_standard + is_ut  # the 64-bit part
    _, _, _, times, types, _ = struct.unpack(">6I", tzif[second + 20 : second + 44])
    at = second + 44
    seconds = struct.unpack(f">{times}q", tzif[at : at + 8 * times])
    kinds = tzif[at + 8 * times : at + 9 * times]
    offsets = [struct.unpack(">lBB", tzif[p : p + 6])[0] for p in range(at + 9 * times, at + 9 * times + 6 * types, 6)]
    found, offset = [], offsets[0]
    for when, kind in zip(seconds, kinds, strict=True):
        if offsets[kind] != offset:
            offset = offsets[kind]
            found.append((when, offset))
    return found


@pytest.mark.parametrize("version", RELEASES)
def test_no_zone_changes_its_offset_twice_within_days_nor_by_more_than_a_day(version: str) -> None:
    """Else an offset could be the same three days apart and another between, and the days be taken for quiet."""
    try:
        folder = release(version)
    except ReleaseMissing as e:
        pytest.skip(f"RELEASES OF TZDATA ARE MISSING: {e}")
    zones = (folder.parent / "zones").read_text().split()
    assert len(zones) > 400

    for zone in zones:
        for (when, before), (next_when, after) in pairwise(transitions(Path(folder, zone).read_bytes())):
            assert next_when - when > 6 * DAY, zone
            assert abs(after - before) <= DAY, zone
