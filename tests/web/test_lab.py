"""The schedule lab, through a real server, of a ledger that is not there: it needs none."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from duly.evidence.nights import nights
from duly.schedule.calendar import make_calendar
from duly.schedule.spec import Schedule, cron, daily, every, hourly
from duly.times import DAY, parse_instant
from duly.web import dashboard
from tests.story import duly
from tests.web.conftest import Answer, Browser, served
from tests.web.test_pages import words


@pytest.fixture(scope="module")
def lab() -> Iterator[Browser]:
    with served(dashboard("/nowhere/ledger.db")) as browser:
        yield browser


def asked(browser: Browser, beside: str = "", **fields: str) -> Answer:
    """The page, or the document beside it, with fields as a form sends them; `_` stands for a dash."""
    query = urlencode({name.replace("_", "-"): value for name, value in fields.items()})
    return browser.ask(f"/lab{beside}?{query}")


def twin_of(page: str) -> str:
    """The line that says the same in a shell."""
    return html.unescape(re.findall(r"the same in a shell.*?<code[^>]*>(.*?)</code>", page, re.DOTALL)[-1])


# -- what a schedule comes to -------------------------------------------------------------------------------------------


def test_an_empty_form_shows_what_can_be_tried(lab: Browser) -> None:
    page = lab.get("/lab")

    for href in re.findall(r'<li><a href="(/lab\?[^"]+)"', page):
        assert lab.ask(html.unescape(href)).status == 200, href
    assert "no ledger was read" in words(page)


def test_a_cron_line_in_words_with_its_windows_and_lints(lab: Browser) -> None:
    page = words(asked(lab, cron="30 2 * * *", zone="Europe/Berlin", range="2026-10-24..2026-10-27").text)

    assert "cron 30 2 * * * in Europe/Berlin; a time that the clocks skip counts at the change" in page
    assert "2026-10-25T02:30:00 24 h Sat 24 Oct 02:30+02:00 to Sun 25 Oct 02:30+02:00" in page
    assert "2026-10-26T02:30:00 25 h" in page
    assert "02:30 happens twice that day; the first counts" in page
    assert "repeated_time" in page
    assert "instead: --period daily --at 02:30" in page


def test_several_lines_are_one_schedule(lab: Browser) -> None:
    answer = asked(lab, cron="0 9 * * *\r\n\r\n0 17 * * *", zone="UTC", n="4")

    assert answer.status == 200
    assert [name[11:16] for name in re.findall(r'<th scope="row">(\d{4}-[^<]+)<', answer.text)][:2] in (
        ["09:00", "17:00"],
        ["17:00", "09:00"],
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "30 2 * * *", "zone": "Europe/Berlin", "range": "2026-10-24..2026-10-27"},
        {"period": "daily", "zone": "Europe/Paris", "at": "02:30", "range": "2026-10-24..2026-10-27"},
        {"period": "weekly", "zone": "UTC", "offset": "sun", "range": "2026-10-01..", "n": "3"},
        {"every": "90m", "anchor": "2026-01-01T00:00:00Z", "range": "2026-10-01..", "n": "2"},
        {
            "cron": "0 2 * * *",
            "zone": "Europe/Berlin",
            "gap": "skip",
            "fold": "both",
            "range": "2026-10-24..2026-10-27",
        },
    ],
)
def test_the_document_is_that_of_the_line_it_names(lab: Browser, fields: dict[str, str]) -> None:
    from shlex import split

    page, document = asked(lab, **fields), asked(lab, ".json", **fields).document

    typed = duly(*split(twin_of(page.text))[1:], "--json").document
    assert document["occurrences"]
    assert {**document, "as_of": ""} == {**typed, "as_of": ""}


def test_days_off_are_written_and_never_read_from_a_file(lab: Browser) -> None:
    shown = asked(
        lab, cron="0 9 * * *", zone="UTC", calendar="sat sun", days_off="skip", range="2026-10-23..2026-10-27"
    )
    refused = asked(lab, cron="0 9 * * *", zone="UTC", calendar="/etc/passwd", days_off="skip")

    assert words(shown.text).count("is a day off of calendar days-off") == 2
    assert "--calendar days-off.txt" in twin_of(shown.text)
    assert refused.status == 400
    assert "it is no day off" in words(refused.text)
    assert "root:" not in refused.text


# -- what cannot be understood ------------------------------------------------------------------------------------------

BAD = [
    ({"cron": "30 2 * * *"}, "zone", "cron needs a zone"),
    ({"cron": "99 2 * * *", "zone": "UTC"}, "cron", "99 is not from 0 to 59"),
    ({"period": "nightly", "zone": "UTC"}, "period", "is no period"),
    ({"period": "daily", "zone": "Europe/Berlni"}, "zone", "there is no time zone"),
    ({"period": "daily", "zone": "../../etc/passwd"}, "zone", "there is no time zone"),
    ({"period": "daily", "zone": "UTC", "at": "25:00"}, "at", "it is not a time of day"),
    ({"period": "daily", "zone": "UTC", "offset": "noon"}, "offset", "noon"),
    ({"every": "soon"}, "every", "is not a duration"),
    ({"every": "5m", "anchor": "now"}, "anchor", "is not an instant"),
    ({"cron": "0 9 * * *", "every": "5m", "zone": "UTC"}, "cron", "leave one out"),
    ({"zone": "UTC"}, "zone", "says how, but not when"),
    ({"cron": "0 9 * * *", "zone": "UTC", "gap": "jump"}, "gap", "write one of"),
    ({"cron": "0 9 * * *", "zone": "UTC", "calendar": "sat"}, "calendar", "give both"),
    ({"cron": "0 9 * * *", "zone": "UTC", "range": "tomorrow"}, "range", "is no range"),
    ({"cron": "0 9 * * *", "zone": "UTC", "range": "+9999999d.."}, "range", "longer than a thousand years"),
    ({"cron": "0 9 * * *", "zone": "UTC", "n": "many"}, "n", "is not a whole number"),
    ({"cron": "0 9 * * *", "zone": "UTC", "n": "201"}, "n", "from 1 to 200"),
    ({"range": "2026-10-01.."}, "range", "of which schedule?"),
]


@pytest.mark.parametrize(("fields", "field", "says"), BAD)
def test_bad_input_is_kept_and_its_field_is_named(lab: Browser, fields: dict[str, str], field: str, says: str) -> None:
    answer = asked(lab, **fields)

    assert answer.status == 400
    assert says in words(html.unescape(answer.text))
    assert re.findall(r'name="([\w-]+)"[^>]*aria-invalid="true" aria-describedby="wrong"', answer.text) == [field]
    for typed in fields.values():
        escaped = html.escape(typed, quote=True).replace("&#x27;", "&#39;")
        assert re.search(f'value="{re.escape(escaped)}"|>\\s*{re.escape(escaped)}<', answer.text), "it was typed"
    next_step = re.findall(r"next</span>.*?<code[^>]*>(.*?)</code>", answer.text, re.DOTALL)
    assert next_step[0].startswith("duly next "), answer.text


@pytest.mark.parametrize(("fields", "field", "says"), BAD)
def test_a_program_is_told_the_same(lab: Browser, fields: dict[str, str], field: str, says: str) -> None:
    answer = asked(lab, ".json", **fields)

    assert answer.status == 400
    assert answer.document["schema"] == "duly.error.v1"
    assert says in answer.document["error"]


def test_a_program_that_asks_for_nothing_is_told_so(lab: Browser) -> None:
    assert "none of them is given" in asked(lab, ".json").document["error"]


def test_what_was_typed_is_text(lab: Browser) -> None:
    evil = "</textarea><script>alert(1)</script>\"'"

    for field in ("cron", "period", "zone", "calendar", "gap", "range", "n"):
        answer = asked(lab, **{"cron": "0 9 * * *", "zone": "UTC", "days_off": "skip", field: evil})
        assert "<script>alert" not in answer.text, field


@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "* * * * *\n" * 29, "n": "200"},
        {"cron": "0 0 29 2 1#5", "n": "200"},  # each 28 years, and none in 2100
        {"cron": "0 2 * 3 7L", "gap": "skip"},  # the very hour that Berlin never has
        {"cron": "* * * * *", "range": "9999-01-01..9999-12-31"},
        {"cron": "0 0 29 2 *", "range": "0001-01-08..", "n": "200"},
        {"cron": "0 * * * *", "calendar": "sun mon tue wed thu fri", "days_off": "next", "n": "200"},
    ],
)
def test_however_hostile_no_more_is_shown_than_a_page_holds(lab: Browser, fields: dict[str, str]) -> None:
    answer = asked(lab, **{"zone": "Europe/Berlin", **fields})

    assert answer.status == 200
    assert len(re.findall(r'<th scope="row">', answer.text)) <= 200 + 12
    assert len(answer.text) < 200_000


def test_half_a_year_of_minutes_is_not_moved_to_one_day(lab: Browser) -> None:
    answer = asked(lab, cron="* * * * *", zone="UTC", calendar="sun mon tue wed thu fri", days_off="next")

    assert answer.status == 400
    assert "not moved here" in words(answer.text)


# -- nights -------------------------------------------------------------------------------------------------------------

AUTUMN = parse_instant("2026-10-01T00:00:00Z")  # Berlin: 25 October 03:00 is 02:00 again; 28 March 2027 02:00 is 03:00


@pytest.mark.parametrize(
    ("schedule", "back", "forward"),
    [
        (cron("30 2 * * *", zone="Europe/Berlin"), ("once", "the first counts"), ("moved", "it counts at 03:00")),
        (cron("30 2 * * *", zone="Europe/Berlin", fold="second"), ("once", "the second counts"), ("moved", "at 03:00")),
        (
            cron("30 2 * * *", zone="Europe/Berlin", gap="shift_forward", fold="both"),
            ("twice", "counts each time"),
            ("moved", "it counts 1h later"),
        ),
        (cron("*/30 * * * *", zone="Europe/Berlin"), ("twice", "each time"), ("skipped", "nothing makes up for it")),
        (hourly("Europe/Berlin"), ("twice", "each time"), ("merged", "counts for both")),
        (
            daily("Europe/Berlin", at="02:30"),
            ("once", "the period before is due at the first"),
            ("moved", "the period before is due at 03:00"),
        ),
        (
            cron("30 2 * * *", zone="Europe/Berlin").on(make_calendar("shop", "sun"), "skip"),
            ("skipped", "is a day off of calendar shop"),
            ("skipped", "is a day off of calendar shop"),
        ),
    ],
)
def test_what_is_done_on_the_nights_of_the_clocks(
    schedule: Schedule, back: tuple[str, str], forward: tuple[str, str]
) -> None:
    found = nights(schedule, AUTUMN, AUTUMN + 366 * DAY)

    assert [(night.date, night.wall) for night in found] == [
        ("2026-10-25", ("03:00", "02:00")),
        ("2027-03-28", ("02:00", "03:00")),
    ]
    for night, (word, says) in zip(found, (back, forward), strict=True):
        (touched,) = night.touched
        assert touched.word == word
        assert says in touched.says


def test_a_day_that_is_longer_is_named(lab: Browser) -> None:
    longer, shorter = nights(daily("Europe/Berlin"), AUTUMN, AUTUMN + 366 * DAY)

    assert not longer.touched
    assert [night.holds and (night.holds.end - night.holds.start) * 24 // DAY for night in (longer, shorter)] == [
        25,
        23,
    ]
    page = words(asked(lab, period="daily", zone="Europe/Berlin").text)
    assert "The window of that night has 25 h" in page
    assert "The window of that night has 23 h" in page


def test_what_is_counted_in_utc_has_no_such_night(lab: Browser) -> None:
    assert nights(every("15m"), AUTUMN, AUTUMN + 366 * DAY) == []
    assert "None: it is counted in UTC" in words(asked(lab, every="15m").text)
    assert "None: the clocks of Asia/Tokyo are not moved" in words(asked(lab, period="daily", zone="Asia/Tokyo").text)
