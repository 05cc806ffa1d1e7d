"""Run keys: printed one way, read in a few, and never two readings of one text. `keys.golden` is the grammar."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duly.errors import KeyInvalid, Misuse, NameInvalid
from duly.schedule.keys import (
    MONTHS,
    WEEK_STARTS,
    RunKey,
    check_job_name,
    check_scope,
    nominal_text,
    parse_key,
    parse_nominal,
)
from duly.times import civil_days, civil_text

GOLDEN = [
    line.split("\t")
    for line in (Path(__file__).parent / "keys.golden").read_text().splitlines()
    if line and not line.startswith("# ")
]


def told(text: str) -> list[str]:
    """What the golden file says of a text: the canonical key and its parts, or the refusal."""
    try:
        key = parse_key(text)
    except Misuse as refused:
        return [type(refused).__name__, str(refused)]
    nominal = key.adhoc or civil_text(key.nominal >> 1) + ("~2" if key.nominal & 1 else "")
    return [str(key), key.job, key.scope, key.grain, nominal, key.zone, str(key.revision or ""), key.label]


@pytest.mark.parametrize(("text", "fields"), [(text, fields) for text, *fields in GOLDEN], ids=[g[0] for g in GOLDEN])
def test_a_key_is_read_as_the_golden_file_says(text: str, fields: list[str]) -> None:
    assert told(text) == fields


# -- laws ------------------------------------------------------------------------------------------------------------

FIRST, LAST = civil_days(1, 1, 8), civil_days(9999, 12, 24)
days = st.integers(FIRST, LAST)
years = st.integers(1, 9999)
day_offsets = st.integers(1, 1439).map(lambda minute: f"{minute // 60:02d}:{minute % 60:02d}")

jobs = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True)
printable = st.characters(categories=("L", "N", "P", "S"), include_characters=" ")
some_scopes = st.text(printable, min_size=1, max_size=30) | st.text("/:[]#%~@ aé", min_size=1, max_size=9)
revisions = st.none() | st.integers(1, 999_999_999)
zone_names = st.sampled_from(("UTC", "Europe/Berlin", "Etc/GMT+5", "America/Argentina/Buenos_Aires"))


def is_scope(scope: str) -> bool:
    try:
        return check_scope(scope) == scope
    except NameInvalid:
        return False


scopes = st.just("") | some_scopes.filter(is_scope)


@st.composite
def nominals(draw: st.DrawFn, zone: str) -> tuple[str, int]:
    """A grain and one of its nominals."""
    day = draw(days)
    second_pass = draw(st.integers(0, 1)) if zone != "UTC" else 0
    match draw(st.sampled_from(("year", "quarter", "month", "week", "day", "hour", "fire"))):
        case "year" | "quarter" as unit:
            offset = draw(st.integers(0, 11))
            month = offset + (3 * draw(st.integers(0, 3)) if unit == "quarter" else 0)
            start = civil_days(draw(years) + month // 12, month % 12 + 1, 1)
            return (f"{unit}@{MONTHS[offset]}" if offset else unit), 172_800 * start
        case "month":
            return "month", 172_800 * civil_days(draw(years), draw(st.integers(1, 12)), 1)
        case "week":
            name, shift = draw(st.sampled_from(sorted(WEEK_STARTS.items())))
            return ("week" if name == "mon" else f"week@{name}"), 172_800 * (day - (day + 3) % 7 + shift)
        case "day":
            offset_text = draw(st.none() | day_offsets)
            if offset_text is None:
                return "day", 172_800 * day
            return f"day@{offset_text}", 172_800 * day + 120 * (int(offset_text[:2]) * 60 + int(offset_text[3:]))
        case "hour":
            return "hour", 172_800 * day + 7200 * draw(st.integers(0, 23)) + second_pass
        case _:
            return "fire", 172_800 * day + 2 * draw(st.integers(0, 86_399)) + second_pass


@st.composite
def keys(draw: st.DrawFn) -> RunKey:
    if draw(st.integers(0, 9)) == 0:
        adhoc = draw(st.from_regex(r"[A-Za-z0-9._-]{1,40}", fullmatch=True))
        return RunKey(draw(jobs), draw(scopes), "adhoc", 0, "", draw(revisions), adhoc)
    zone = draw(zone_names)
    grain, nominal = draw(nominals(zone))
    return RunKey(draw(jobs), draw(scopes), grain, nominal, zone, draw(revisions))


@settings(max_examples=500, deadline=None)
@given(keys())
def test_a_key_comes_back_from_its_text(key: RunKey) -> None:
    assert parse_key(str(key)) == key


@settings(max_examples=200, deadline=None)
@given(keys(), keys())
def test_two_keys_never_print_alike(one: RunKey, other: RunKey) -> None:
    assert (str(one) == str(other)) == (one == other)


@settings(max_examples=200, deadline=None)
@given(keys())
def test_a_label_names_a_file(key: RunKey) -> None:
    assert not set(key.label) & set(':/\\*?"<>| %[]')
    assert key.label == key.middle.replace(":", "")


@settings(max_examples=500, deadline=None)
@given(st.text("0123456789-:TWQZ@~2+[]#./ asunprUTC%", max_size=30))
def test_any_text_is_a_key_or_refused_and_what_is_read_prints_alike_for_ever(text: str) -> None:
    try:
        key = parse_key("job:" + text)
    except (KeyInvalid, NameInvalid):
        return

    assert parse_key(str(key)) == key


# -- parts -----------------------------------------------------------------------------------------------------------


def test_the_bare_key_has_no_revision() -> None:
    key = parse_key("job:2026-10-05[UTC]#3")

    assert str(key.bare) == "job:2026-10-05[UTC]"
    assert key.bare.bare == key.bare


@pytest.mark.parametrize(
    ("text", "grain", "means"),
    [
        ("2026-10-05", "day", "2026-10-05"),
        ("2026-10-05", "day@06:00", "2026-10-05@06:00"),
        ("2026-10-05@06:00", "day@06:00", "2026-10-05@06:00"),
        ("2026-W41", "week@sun", "2026-W41@sun"),
        ("2026-Q1", "quarter@apr", "2026-Q1@apr"),
        ("2026", "year@apr", "2026@apr"),
        ("2026-11", "month", "2026-11"),
        ("2026-11-28T14", "hour", "2026-11-28T14"),
        ("2026-11-28T14:00", "hour", "2026-11-28T14"),
        ("2026-10-25T02~2", "hour", "2026-10-25T02~2"),
        ("2026-11-28T14", "fire", "2026-11-28T14:00:00"),
        ("2026-11-28T14:30", "fire", "2026-11-28T14:30:00"),
        ("2026-10-25T02:30~2", "fire", "2026-10-25T02:30:00~2"),
    ],
)
def test_a_person_may_leave_out_what_the_schedule_says(text: str, grain: str, means: str) -> None:
    found, nominal, _ = parse_nominal(text, grain)

    assert found == grain
    assert nominal_text(found, nominal, "Europe/Berlin") == means


@pytest.mark.parametrize(
    ("text", "grain", "found"),
    [("2026-10", "day", "month"), ("2026-10-05T02:30", "hour", "fire"), ("2026-10-05", "week", "day")],
)
def test_what_does_not_fit_the_schedule_keeps_its_own_grain(text: str, grain: str, found: str) -> None:
    assert parse_nominal(text, grain)[0] == found


@pytest.mark.parametrize("name", ["a", "0", "invoice-export", "A.b_c-d", "x" * 100])
def test_a_job_name_may_be(name: str) -> None:
    assert check_job_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "_a", "a b", "a/b", "a:b", "é", "x" * 101, "a\n"])
def test_a_job_name_may_not_be(name: str) -> None:
    with pytest.raises(NameInvalid, match=r"^job: "):
        check_job_name(name)


@pytest.mark.parametrize("scope", ["acme", "a b", "é", "日本", "a/b:c[d]#e%f~g@h", "x" * 200])
def test_a_scope_may_be(scope: str) -> None:
    assert check_scope(scope) == scope


@pytest.mark.parametrize(
    "scope", ["", " a", "a ", "a\tb", "a\nb", "a\u00a0b", "e\u0301", "\ud800", "\u200b", "x" * 201]
)
def test_a_scope_may_not_be(scope: str) -> None:
    with pytest.raises(NameInvalid, match=r"^scope: "):
        check_scope(scope)


def test_the_refusal_of_another_form_says_what_to_write() -> None:
    with pytest.raises(NameInvalid, match="write 'é'"):
        check_scope("e\u0301")
