"""The export: how each window of a range ended, in lines of which none can be changed unseen."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from duly.cli.dispatch import dispatch
from duly.evidence.chain import FIRST, Chain, Reading, canonical, link
from duly.evidence.export import Comparison, Wanted, export
from duly.schedule.spec import every, hourly
from duly.times import DAY, MINUTE, parse_duration, parse_instant
from tests.books import Book, PostgresBook
from tests.outbox.post import Post
from tests.servers import Server

RANGE = "2026-10-05..2026-10-12"
KEY = b"a key that nobody guesses"


@pytest.fixture(params=["sqlite", "postgres"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    """A week of one job, on each database: done, dropped, failed, skipped, unknown, running, late and missing."""
    if request.param == "sqlite":
        yield of_a_week(Book(tmp_path / "jobs.db"))
        return
    server: Server = request.getfixturevalue("server")
    url = server.new_database()
    yield of_a_week(PostgresBook(url))
    server.drop(url)


def of_a_week(book: Book) -> Book:
    book.job(contract="external", overlap=1)
    Post(book).complete(book.take("2026-10-05"), "mail")
    book.clock.set("2026-10-11T12:00:00Z")
    book.fail(book.take("2026-10-06"), retry_in=None)
    book.skip("2026-10-07")
    book.doubt(book.take("2026-10-08"))
    book.renew(book.take("2026-10-10"))
    return book


def lines_of(book: Book, between: str = RANGE, *, key: bytes | None = None, **wanted: Any) -> list[bytes]:
    chain, written = Chain(), []
    book.store.read(export(Wanted(between, **wanted), lambda fields: written.append(chain.line(fields))))
    return [*written, chain.trailer(key)]


def windows_in(lines: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines[1:-1]]


# -- what it says ------------------------------------------------------------------------------------------------------


def test_each_owed_window_is_there_with_its_state(book: Book) -> None:
    windows = windows_in(lines_of(book))

    assert [(window["window"], window["state"]) for window in windows] == [
        ("2026-10-05", "undelivered"),
        ("2026-10-06", "failed"),
        ("2026-10-07", "skipped"),
        ("2026-10-08", "unknown"),
        ("2026-10-09", "missing"),
        ("2026-10-10", "running"),
    ]


def test_a_window_says_who_did_what_when_and_why(book: Book) -> None:
    done, failed, skipped, unknown, missing, running = windows_in(lines_of(book))

    assert (done["due"], done["window_start"], done["window_end"]) == (
        *("2026-10-06T00:00:00Z", "2026-10-05T00:00:00Z", "2026-10-06T00:00:00Z"),
    )
    assert [(a["number"], a["outcome"], a["owner"]) for a in done["attempts"]] == [(1, "completed", "host/1@1+a")]
    (message,) = done["messages"]
    assert (message["name"], message["destination"], message["state"]) == ("mail", "billing", "pending")
    assert re.fullmatch(r"[0-9a-f]{64}", message["sha256"])
    assert (failed["attempts"][0]["outcome"], failed["attempts"][0]["error"]) == ("failed", "exit 1")
    assert [(e["kind"], e["by"], e["reason"], e["before"], e["after"]) for e in skipped["events"]] == [
        ("skipped", "ops@example", "looked into it", "absent", "skipped")
    ]
    assert [(a["outcome"], a["ended_at"]) for a in (*unknown["attempts"], *running["attempts"])] == [
        *(("unknown", None), ("running", None))
    ]
    assert (missing["attempts"], missing["late"], missing["version"]) == ([], True, 1)


def test_a_dropped_range_says_why_when_and_by_whom_of_each_window(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job(catch_up="latest")
    book.work_all()
    book.clock.advance(3 * DAY)
    book.work_all()

    told = {window["window"]: window["skipped"] for window in windows_in(lines_of(book))}

    reason = {"reason": "catch-up latest: a newer window was due", "at": "2026-10-09T03:00:00Z", "by": "dev@example"}
    assert told == {"2026-10-05": None, "2026-10-06": reason, "2026-10-07": reason, "2026-10-08": None}


def test_the_attempts_of_every_revision_are_there(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job()
    book.complete(claim := book.take())
    book.reopen(claim.run)
    book.work_all()

    (window,) = windows_in(lines_of(book))

    assert window["key"] == "export:2026-10-05[UTC]#2"
    assert [(a["revision"], a["outcome"]) for a in window["attempts"]] == [(1, "completed"), (2, "completed")]


def test_what_has_not_come_due_is_not_there(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job()
    book.skip("2026-10-09")
    book.clock.advance(DAY)

    assert [window["window"] for window in windows_in(lines_of(book))] == ["2026-10-05", "2026-10-06"]
    before = book.clock.now() - DAY
    assert [window["window"] for window in windows_in(lines_of(book, at=before))] == ["2026-10-05"]


def test_rows_that_no_schedule_names_any_more_are_there_too(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job("rates", hourly("UTC"))
    book.work_all("rates")
    book.amend("update duly_run set nominal = nominal + 120 where nominal = (select max(nominal) from duly_run)")
    book.amend(
        "update duly_attempt set nominal = nominal + 120 where nominal = (select max(nominal) from duly_attempt)"
    )

    windows = windows_in(lines_of(book, "2026-10-06..2026-10-07"))

    # Its row lies a minute beside the grid now, and the window of the grid has none.
    assert [(w["window"], w["state"], len(w["attempts"])) for w in windows] == [
        ("2026-10-06T02", "skipped", 0),
        ("2026-10-06T02", "complete", 1),
    ]


def test_the_same_ledger_range_and_instant_give_the_same_bytes(book: Book) -> None:
    first = lines_of(book)
    assert lines_of(book) == first

    at = book.clock.now()
    book.clock.advance(MINUTE // 2)

    assert lines_of(book)[0] != first[0]
    assert lines_of(book, at=at) == first


def test_one_job_or_scope_alone(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job()
    book.job("report")
    book.declare("report", "acme")

    keys = [window["key"] for window in windows_in(lines_of(book, job="report", scope="acme"))]

    assert keys == ["acme/report:2026-10-05[UTC]"]


def test_a_year_of_five_minute_windows_takes_no_more_memory_than_a_month(tmp_path: Path) -> None:
    """Months stand for the year here: what is held is a batch, whatever the range."""
    book = Book(tmp_path / "jobs.db", at="2026-01-01T00:00:00Z")
    book.job("poll", every("5m"))
    book.clock.set("2026-03-01T00:00:00Z")

    def peak(between: str) -> tuple[int, int]:
        chain = Chain()
        tracemalloc.start()
        book.store.read(export(Wanted(between), chain.line))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return chain.windows, most

    few, small = peak("2026-01-10..2026-01-13")
    many, large = peak("2026-01-10..2026-01-25")

    assert (few, many) == (3 * 288, 15 * 288)
    assert large < 1.3 * small


# -- tampering ---------------------------------------------------------------------------------------------------------


def text_changed(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"state":"failed"', b'"state":"complete"') for line in lines]


def one_line_hashed_anew(lines: list[bytes]) -> list[bytes]:
    fields = json.loads(lines[2])
    previous = json.loads(lines[1])["hash"]
    del fields["hash"]
    fields["state"] = "complete"
    return [*lines[:2], canonical({**fields, "hash": link(previous, fields)}) + b"\n", *lines[3:]]


def written_otherwise(lines: list[bytes]) -> list[bytes]:
    """Another text of the same meaning: a second key of a name, which a reader may take or leave."""
    return [lines[0], lines[1].replace(b'{"attempts"', b'{"state":"complete","attempts"', 1), *lines[2:]]


def header_changed(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b"2026-10-12", b"2026-10-06"), *lines[1:]]


def trailer_counts_less(lines: list[bytes]) -> list[bytes]:
    fields = json.loads(lines[-1])
    del fields["hash"]
    fields["windows"] -= 1
    previous = json.loads(lines[-2])["hash"]
    return [*lines[:-1], canonical({**fields, "hash": link(previous, fields)}) + b"\n"]


def added_after_the_trailer(lines: list[bytes]) -> list[bytes]:
    """As if it followed the last window: its hash is right there."""
    fields = {name: value for name, value in json.loads(lines[2]).items() if name != "hash"}
    fitting = link(json.loads(lines[-2])["hash"], fields)
    return [*lines, canonical({**fields, "hash": fitting}) + b"\n"]


TAMPERED: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "a line is changed": text_changed,
    "a line is changed, and its own hash with it": one_line_hashed_anew,
    "a line is written otherwise": written_otherwise,
    "a line is given a mac": lambda lines: [
        *lines[:1],
        lines[1].replace(b'"messages":', b'"mac":"x","messages":'),
        *lines[2:],
    ],
    "a line is removed": lambda lines: [*lines[:2], *lines[3:]],
    "the last window is removed": lambda lines: [*lines[:-2], lines[-1]],
    "two lines are swapped": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "a line is added": lambda lines: [*lines[:3], lines[2], *lines[3:]],
    "a line is added after the trailer": lambda lines: [*lines, lines[2]],
    "a line that fits the last is added after the trailer": added_after_the_trailer,
    "it is cut off": lambda lines: lines[:-1],
    "it is cut off in a line": lambda lines: [*lines[:-1], lines[-1][:-9]],
    "its last end of line is gone": lambda lines: [*lines[:-1], lines[-1][:-1]],
    "the header is changed": header_changed,
    "the header is removed": lambda lines: lines[1:],
    "the trailer counts less": trailer_counts_less,
    "it is empty": lambda lines: [],
    "a line is of a kind that there is not": lambda lines: [*lines[:2], b'{"hash":"","kind":["window"]}\n', *lines[3:]],
    "a line is no JSON": lambda lines: [*lines[:2], b"\xff\n", *lines[3:]],
}


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Book:
    return of_a_week(Book(tmp_path_factory.mktemp("week") / "jobs.db"))


def read(lines: list[bytes]) -> Reading:
    reading = Reading(iter(lines))
    for _ in reading.windows():
        pass
    return reading


def test_a_file_as_it_was_written_is_whole(week: Book) -> None:
    lines = lines_of(week)

    reading = read(lines)

    assert reading.broken is None
    assert reading.counted == 6
    assert reading.closing == json.loads(lines[-1])["hash"]
    assert json.loads(lines[-1])["states"]["failed"] == 1


@pytest.mark.parametrize("how", TAMPERED)
def test_tampering_is_found(week: Book, how: str) -> None:
    lines = lines_of(week)
    tampered = TAMPERED[how](lines)
    assert tampered != lines

    assert read(tampered).broken is not None


def anew(lines: list[bytes], key: bytes | None = None) -> list[bytes]:
    """All of it written again, as somebody does who knows this page: with a window that is complete after all."""
    chain = Chain()
    fields = [json.loads(line) for line in text_changed(lines)[:-1]]
    return [*(chain.line({k: v for k, v in one.items() if k != "hash"}) for one in fields), chain.trailer(key)]


def test_a_file_that_was_written_anew_is_found_by_the_hash_that_was_kept(week: Book) -> None:
    lines = lines_of(week)
    kept = json.loads(lines[-1])["hash"]

    forged = read(anew(lines))

    assert forged.broken is None
    assert "written anew" in str(forged.distrust(key=None, expected=kept))
    assert read(lines).distrust(key=None, expected=kept) is None


def test_a_file_that_was_written_anew_is_found_by_the_key(week: Book) -> None:
    lines = lines_of(week, key=KEY)

    assert read(lines).distrust(key=KEY, expected=None) is None
    assert "without the key" in str(read(anew(lines)).distrust(key=KEY, expected=None))
    assert "not signed with this key" in str(read(anew(lines, b"another key of his")).distrust(key=KEY, expected=None))
    stripped = [*lines[:-1], lines_of(week)[-1]]
    assert "without the key" in str(read(stripped).distrust(key=KEY, expected=None))


def test_the_hash_is_what_the_page_says() -> None:
    """Spelled out once, without the code that writes it."""
    import hashlib

    chain = Chain()
    line = chain.line({"kind": "header", "b": "ü", "a": 1})

    expected = hashlib.sha256(("0" * 64).encode() + '{"a":1,"b":"ü","kind":"header"}'.encode()).hexdigest()
    assert FIRST == "0" * 64
    assert line == f'{{"a":1,"b":"ü","hash":"{expected}","kind":"header"}}\n'.encode()


# -- against a ledger --------------------------------------------------------------------------------------------------


def compared(book: Book, lines: list[bytes]) -> dict[str, str]:
    reading = Reading(iter(lines))
    windows = reading.windows()
    first = next(windows)
    comparison = Comparison(reading.header, iter([first, *windows]))
    at = parse_instant(str(reading.header["exported_at"]))
    book.store.read(export(Wanted(str(reading.header["range"]), at=at), comparison.see))
    return {one.key: one.text for one in comparison.end()}


def test_a_ledger_that_has_not_changed_says_the_same(book: Book) -> None:
    assert compared(book, lines_of(book)) == {}


def test_what_a_ledger_says_otherwise_is_told(book: Book) -> None:
    lines = lines_of(book)
    book.complete(book.take("2026-10-09"))
    book.retry(book.find("2026-10-06")[1])
    book.amend("delete from duly_run where state = 'skipped'")
    book.amend("delete from duly_event where kind = 'skipped'")

    told = compared(book, lines)

    assert sorted(told) == [f"export:2026-10-0{day}[UTC]" for day in (6, 7, 9)]
    assert "state: 'failed' in the file, 'retrying' in the ledger" in told["export:2026-10-06[UTC]"]
    assert "attempts: 0 in the file, 1 in the ledger" in told["export:2026-10-09[UTC]"]


def test_another_ledger_is_told(week: Book, tmp_path: Path) -> None:
    other = of_a_week(Book(tmp_path / "jobs.db"))

    told = compared(other, lines_of(week))

    assert "ledger: " in told["the header"]


def test_windows_that_one_of_the_two_does_not_have_are_told(week: Book) -> None:
    lines = lines_of(week)
    fewer = lines_of(week, "2026-10-05..2026-10-09")
    header = json.loads(lines[0])
    chain = Chain()
    longer = [
        chain.line({k: v for k, v in json.loads(line).items() if k != "hash"}) for line in [lines[0], *fewer[1:-1]]
    ]

    told = compared(week, [*longer, chain.trailer(None)])

    assert header["range"] == RANGE
    assert told == {
        "export:2026-10-09[UTC]": "it is in the ledger, and not in the file",
        "export:2026-10-10[UTC]": "it is in the ledger, and not in the file",
    }


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_writes_and_verifies(week: Book, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, key = str(tmp_path / "week.jsonl"), tmp_path / "key"
    key.write_bytes(KEY + b"\n")

    assert dispatch(["runs", "export", RANGE, "-o", path, "--key-file", str(key), "--ledger", week.path]) == 0
    printed = capfd.readouterr().err
    (kept,) = re.findall(r"hash ([0-9a-f]{64})", printed)
    assert "6 windows written" in printed
    assert KEY.decode() not in Path(path).read_text() + printed

    assert dispatch(["runs", "verify-export", path, "--key-file", str(key), "--expect", kept]) == 0
    assert dispatch(["runs", "verify-export", path, "--against", week.path, "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["schema"], document["whole"], document["signed"]) == ("duly.verify_export.v1", True, True)

    Path(path).write_bytes(b"".join(text_changed(Path(path).read_bytes().splitlines(keepends=True))))
    assert dispatch(["runs", "verify-export", path]) == 1
    assert capfd.readouterr().out == (
        "line 3   its hash is another: it was changed, or a line before it was removed or moved\n"
    )


def test_an_export_writes_over_nothing_and_leaves_nothing_half_done(
    week: Book, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there.jsonl"
    there.write_text("kept")

    assert dispatch(["runs", "export", RANGE, "-o", str(there), "--ledger", week.path]) == 64
    assert there.read_text() == "kept"
    new = tmp_path / "new.jsonl"
    assert dispatch(["runs", "export", "2026-10-05..", "-o", str(new), "--ledger", week.path]) == 64
    assert "has no end" in capfd.readouterr().err
    assert not new.exists()
    at = str(parse_duration("1d"))  # an instant is written as one
    assert dispatch(["runs", "export", RANGE, "--at", at, "--ledger", week.path]) == 64


def test_a_short_key_is_refused(week: Book, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("secret\n")

    assert dispatch(["runs", "export", RANGE, "--key-file", str(tmp_path / "key"), "--ledger", week.path]) == 64

    said_of_it = capfd.readouterr().err
    assert "has 6 bytes" in said_of_it
    assert "secret" not in said_of_it


@pytest.mark.parametrize("field", ["exported_at", "range"])
def test_a_header_that_no_export_has_is_a_finding_and_no_misuse(
    week: Book, tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    chain, written = Chain(), []
    for line in lines_of(week)[:-1]:
        fields = {name: value for name, value in json.loads(line).items() if name != "hash"}
        if fields["kind"] == "header":
            fields[field] = "2999-01-01T00:00:00Z" if field == "exported_at" else "rubbish"
        written.append(chain.line(fields))
    path = tmp_path / "file.jsonl"
    path.write_bytes(b"".join([*written, chain.trailer(None)]))

    assert dispatch(["runs", "verify-export", str(path), "--against", week.path]) == 1

    assert "its header cannot be compared" in capsys.readouterr().out


def test_it_is_said_of_what_a_file_is(week: Book, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(b"".join(lines_of(week)))

    assert dispatch(["runs", "verify-export", str(path)]) == 0

    assert f"windows of {RANGE} as of " in capsys.readouterr().err
