"""Samples of the long runs in campaigns/: every twentieth zone, and those whose dates were crossed out."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaigns import cronsim, tiling
from campaigns.progress import Progress

SAMPLE = sorted({*tiling.zones()[::30], "Europe/Berlin", *(zone for zone, _ in tiling.NEVER_WERE)})


@pytest.mark.parametrize("zone", SAMPLE)
def test_windows_tile_from_1970_to_2037_and_only_known_dates_never_were(zone: str) -> None:
    assert {(zone, day) for day in tiling.empty_dates(zone)} == {(z, day) for z, day in tiling.NEVER_WERE if z == zone}


@pytest.mark.parametrize("zone", ["Africa/Casablanca", "Antarctica/Troll", "Europe/Berlin"])
def test_weeks_months_and_hours_tile_too(zone: str) -> None:
    tiling.check_longer(zone)


@pytest.mark.parametrize(
    "zone",
    [
        "America/New_York",
        "America/Nuuk",
        "Antarctica/Casey",
        "Asia/Beirut",
        "Asia/Pyongyang",
        "Australia/Lord_Howe",
        "Europe/Berlin",
    ],
)
def test_fires_around_changes_are_those_of_cronsim_or_of_the_clock(zone: str) -> None:
    found, _ = cronsim.differences(zone)

    assert found == []


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Progress("sample").note("Europe/Berlin", "")

    again = Progress("sample")

    assert again.has("Europe/Berlin")
    assert not again.has("Europe/Paris")
