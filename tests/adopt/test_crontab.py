"""Crontabs of many styles, imported: no line is lost, no schedule changed, nothing done twice, and all of it taken back."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import takewhile
from pathlib import Path
from shlex import split
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from duly.adopt.crontab import Context, is_system, read_crontab
from duly.adopt.found import Left, When
from duly.adopt.naming import name_of
from duly.adopt.shell import Wrapper, unwrap
from duly.adopt.vixie import in_our_words
from duly.cli.import_words import host_zone
from duly.errors import Misuse
from duly.times import SECOND, from_datetime
from duly.work.command import Briefing, literal, not_literal
from duly.work.configuration import Layers
from tests.adopt.crons import ALIASES, TWO_YEARS, CronEntry, as_cron_hands_it_on, nights, run_as_cron
from tests.story import SOURCE, Said, here

CRONTABS = sorted((Path(__file__).parent / "crontabs").glob("*.crontab"))
ZONES = ("Europe/Berlin", "America/New_York")
SINCE, UNTIL = TWO_YEARS

# Why lines of these crontabs stay as they are, by number.
LEFT = {
    "aliases": {8: "reboot", 9: "reboot"},
    "carriage-returns": {2: "carriage_return"},
    "long": {1: "too_long", 3: "too_long"},
    "no-end": {2: "not_accepted"},
    "refused": {
        2: "not_accepted",
        3: "not_accepted",
        4: "not_accepted",
        5: "backwards",
        6: "backwards",
        7: "not_accepted",
        8: "not_accepted",
        9: "never_fires",
        10: "not_accepted",
        11: "not_accepted",
        12: "no_equal",
    },
    "shells": {6: "shell"},
    "zones": {7: "random"},
}


def imported(crontab: Path, folder: Path, zone: str, *more: str) -> Said:
    """An import of a crontab, whose jobs go to a configuration beside it."""
    kind = "--system" if ".system." in crontab.name else "--user"
    cron = ("--cron", "cronie") if ".cronie." in crontab.name else ()
    config = ("--config", str(folder / "duly.toml"), "--duly", "/usr/bin/duly")
    zoned = () if "--undo" in more else ("--zone", zone)
    return here(str(folder / "l.db"), "import", "crontab", str(crontab), kind, *cron, *config, *zoned, *more, "--json")


def copied(crontab: Path, folder: Path) -> Path:
    copy = folder / crontab.name
    copy.write_bytes(crontab.read_bytes())
    return copy


@pytest.mark.parametrize("crontab", CRONTABS, ids=lambda path: path.stem)
def test_no_line_is_lost_and_what_stays_stays_to_the_byte(crontab: Path, tmp_path: Path) -> None:
    copy = copied(crontab, tmp_path)
    before = crontab.read_bytes().split(b"\n")

    said = imported(copy, tmp_path, "Europe/Berlin", "--write")

    after = copy.read_bytes().split(b"\n")
    wrapped = {place["line"]: job["job"] for job in said.document["jobs"] for place in job["from"]}
    left = {note["line"]: note["code"] for note in said.document["notes"] if not note["carried"]}
    assert left == LEFT.get(crontab.name.partition(".")[0], {})
    assert said.code == 0
    assert len(before) == len(after)
    for number, (old, new) in enumerate(zip(before, after, strict=True), start=1):
        if number not in wrapped:
            assert new == old
            is_entry = old.strip() and not old.lstrip().startswith(b"#") and not re.match(rb"\s*[\w\"']+\s*=\s*\S", old)
            assert not is_entry or number in left or b"duly " in old, old
            continue
        head, _, _ = new.partition(b"/usr/bin/duly exec " + wrapped[number].encode() + b" ")
        assert old.startswith(head), (old, new)
        assert len(head.split()) == (1 if head.lstrip().startswith(b"@") else 5) + (".system." in crontab.name)


@pytest.mark.parametrize("crontab", CRONTABS, ids=lambda path: path.stem)
@pytest.mark.parametrize("zone", ZONES)
def test_what_the_configuration_says_fires_when_the_lines_did(crontab: Path, zone: str, tmp_path: Path) -> None:
    copy = copied(crontab, tmp_path)
    lines = crontab.read_bytes().decode("utf-8", "replace").split("\n")

    said = imported(copy, tmp_path, zone, "--write")

    layers = Layers([str(tmp_path / "duly.toml")] if said.document["jobs"] else [])
    assert layers.names() == [job["job"] for job in said.document["jobs"]]
    for job in said.document["jobs"]:
        entry = layers.job_or_raise(job["job"])
        schedule = entry.declaration.schedule
        assert schedule is not None
        found = {at // SECOND for at in schedule.instants(from_datetime(SINCE), from_datetime(UNTIL))}
        originals = [lines[place["line"] - 1] for place in job["from"]]
        expected: set[int] = set()
        for original in originals:
            fired = fires(
                fields_of(original), job["zone"], by_clock=job["gap"] == "skip" and ".cronie." in crontab.name
            )
            assert not fired & expected, "two lines that fire at one instant are two jobs"
            expected |= fired
        assert found == expected, (job, originals)


def fields_of(line: str) -> str:
    words = line.strip().removeprefix("-").split()
    return words[0] if words[0].startswith("@") else " ".join(words[:5])


@cache
def fires(when: str, zone: str, *, by_clock: bool) -> frozenset[int]:
    """The instants of a line in two years: the wall clocks that cronsim names, put into the zone by cron's rules; in the days
    around a change of the clocks they must be those at which a clock that is read each minute starts the line."""
    info, entry = ZoneInfo(zone), CronEntry(when)
    changes = nights(info, SINCE, UNTIL)
    rough = {(night + timedelta(days=near)).date() for night in changes for near in (-1, 0, 1)}
    days, times = days_and_times(when)
    found: set[int] = set()
    for day in days:
        if day.date() in rough:
            for time in times:
                found.update(instants_of(day + time, info, wildcard=entry.wildcard, by_clock=by_clock))
        else:
            midnight = round((day + timedelta(hours=12)).replace(tzinfo=info).timestamp()) - 12 * 3600
            found.update(midnight + round(time.total_seconds()) for time in times)
    for night in changes:
        begin, end = night - timedelta(days=2), night + timedelta(days=2)
        read = entry.fires_by_clock(info, begin, end) if by_clock else entry.fires(info, begin, end)
        assert among(found, begin, end) == {round(at.timestamp()) for at in read}, when
    return frozenset(among(found, SINCE, UNTIL))


def among(found: set[int], begin: datetime, end: datetime) -> set[int]:
    first, last = round(begin.timestamp()), round(end.timestamp())
    return {at for at in found if first < at <= last}


@cache
def days_and_times(when: str) -> tuple[list[datetime], list[timedelta]]:
    """The midnights of the days on which a line fires in two years, a day more at either end, and the times of such a day:
    both as cronsim has them without a zone."""
    minute, hour, dom, month, dow = FOR_CRONSIM.get(when, ALIASES.get(when, when)).split()
    begin, end = SINCE.replace(tzinfo=None) - timedelta(days=1), UNTIL.replace(tzinfo=None) + timedelta(days=1)
    before = begin - timedelta(minutes=1)
    days = takewhile(lambda at: at < end, CronSim(f"0 0 {dom} {month} {dow}", before))
    times = takewhile(lambda at: at < begin + timedelta(days=1), CronSim(f"{minute} {hour} * * *", before))
    return list(days), [at - begin for at in times]


FOR_CRONSIM = {"*/60 5 * * *": "0 5 * * *"}  # a step as wide as its field, which cronsim refuses


def instants_of(wall: datetime, zone: ZoneInfo, *, wildcard: bool, by_clock: bool) -> set[int]:
    first, second = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return {round(first.timestamp())}
    is_real = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == wall
    if is_real:
        return {round(at.timestamp()) for at in ((first, second) if wildcard or by_clock else (first,))}
    if wildcard or by_clock:
        return set()
    after = wall
    while after.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != after:
        after += timedelta(minutes=1)
    return {round(after.replace(tzinfo=zone).timestamp())}


@pytest.mark.parametrize("crontab", CRONTABS, ids=lambda path: path.stem)
def test_again_changes_nothing_and_undo_gives_the_bytes_back(crontab: Path, tmp_path: Path) -> None:
    copy = copied(crontab, tmp_path)
    first = imported(copy, tmp_path, "Europe/Berlin", "--write")
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    again = imported(copy, tmp_path, "Europe/Berlin", "--write")

    assert again.document["jobs"] == []
    assert again.document["changes"] == []
    assert "nothing to import" in again.talk
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == written

    undone = imported(copy, tmp_path, "Europe/Berlin", "--undo", "--write")

    assert undone.code == 0
    assert undone.document["undone"] == sorted(job["job"] for job in first.document["jobs"])
    assert copy.read_bytes() == crontab.read_bytes()
    assert not (tmp_path / "duly.toml").exists()


def test_without_write_nothing_is_written(tmp_path: Path) -> None:
    copy = copied(next(path for path in CRONTABS if path.stem == "shop"), tmp_path)
    before = copy.read_bytes()

    said = here(
        str(tmp_path / "l.db"),
        "import",
        "crontab",
        str(copy),
        "--zone",
        "Europe/Berlin",
        "--config",
        str(tmp_path / "d.toml"),
    )

    assert said.code == 0
    assert copy.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["shop.crontab"]
    assert "+[jobs.export]" in said.out
    assert "nothing was changed; --write does it" in said.talk


# -- as cron runs it -----------------------------------------------------------------------------------------------------

COMMANDS = [
    "umask 077",
    "echo plain words > out",
    "cat > out%first%second 50\\%%%last",
    'echo "$(date +\\%Y)-{date} {{label} {window.start:\\%H} {x}" > out',
    "printf '<\\%s>' a\\\\b 'it'\\''s' \"q\\\"q\" \\' > out",
    "echo 'end\\' > out",
    'cd /tmp && echo $HOME *.none $((1+2)) `echo sub` | sort > "$HOME/out"',
    "for i in 1 2 3; do echo $i; done > out # and a comment",
    "LANG=C A='b c'; export A; env | grep ^A= > out; exit 0",
    "(echo one; echo two >&2) > out 2>&1",
    "echo caf\u00e9 \u20ac > out",
    'x="a  b"; echo "$x" $x; echo "tab\there" > out',
    "echo $0 > out",
    'read line; echo "$line" > out%from stdin',
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_a_wrapped_line_does_once_what_the_original_did(command: str, shell: str, tmp_path: Path) -> None:
    bare, wrapped = tmp_path / "bare" / "home", tmp_path / "wrapped" / "home"
    bare.mkdir(parents=True)
    wrapped.mkdir(parents=True)
    crontab = tmp_path / "crontab"
    crontab.write_text(f"SHELL={shell}\n30 2 * * * {command}\n", encoding="utf-8")
    said = here(
        str(tmp_path / "l.db"), "import", "crontab", str(crontab), "--user", "--zone", "Europe/Berlin", "--write",
        "--config", str(tmp_path / "duly.toml"), "--duly", a_duly(tmp_path),
    )  # fmt: skip
    assert said.code == 0, said
    line = crontab.read_text(encoding="utf-8").splitlines()[1].removeprefix("30 2 * * * ")
    environment = {"SHELL": shell, "DULY_LEDGER": f"sqlite:///{tmp_path}/l.db"}

    expected = run_as_cron(command, bare, environment)
    first = run_as_cron(line, wrapped, environment)

    assert (first.returncode, first.stdout, first.stderr) == (expected.returncode, expected.stdout, expected.stderr)
    if command == "umask 077":  # which no program is
        return
    done = (wrapped / "out").read_bytes().replace(b"/wrapped/", b"/bare/")
    assert done == (bare / "out").read_bytes()
    (wrapped / "out").unlink()

    second = run_as_cron(line, wrapped, environment)

    assert second.returncode == 0
    assert not (wrapped / "out").exists()


def a_duly(folder: Path) -> str:
    """A command that is this duly, for a shell that knows nothing of this process's environment."""
    path = folder / "duly"
    path.write_text(
        f'#!/bin/sh\nPYTHONPATH="{SOURCE}" PYTHONUTF8=1 exec "{sys.executable}" -m duly "$@"\n', encoding="utf-8"
    )
    path.chmod(0o755)
    return str(path)


def test_the_configuration_is_found_by_the_poke_where_nobody_names_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    crontab = tmp_path / "crontab"
    crontab.write_text("0 1 * * * /bin/echo worked\n", encoding="utf-8")

    said = here(
        "", "import", "crontab", str(crontab), "--zone", "UTC", "--write", "--duly", a_duly(tmp_path),
        HOME=str(home), DULY_LEDGER="", XDG_CONFIG_HOME="",
    )  # fmt: skip

    assert said.code == 0, said
    assert (home / ".config/duly/duly.toml").stat().st_mode & 0o777 == 0o600
    line = crontab.read_text(encoding="utf-8").removeprefix("0 1 * * * ").rstrip("\n")
    assert line == f"{tmp_path}/duly exec echo-worked -q -- /bin/echo worked"
    poked = run_as_cron(line, home, {"DULY_LEDGER": f"sqlite:///{tmp_path}/l.db"})
    assert (poked.returncode, poked.stdout) == (0, b"worked\n"), poked


SIGNS = st.text(
    st.sampled_from("ab {}'\"\\%$&|;<>()*?~#!=:./\t\u00e9") | st.sampled_from("{date}label"), min_size=1, max_size=40
)
PARTS = st.lists(
    SIGNS | st.sampled_from(["{date}", "{{label}", "{window.start:\\%H}", "\\%", "'", "\\'", "\\\\"]), min_size=1
)


@given(parts=PARTS)
def test_what_cron_hands_to_the_shell_is_what_the_wrapped_line_hands_on(parts: list[str]) -> None:
    """What cron makes of % and backslashes, a shell of quotes, and duly of placeholders: one after the other they give what
    cron would have made of the command alone."""
    command = re.sub(r"(?<!\\)((?:\\\\)*)%.*", r"\1", "".join(parts)).strip()  # what comes after a bare % is no command
    wrapped = Wrapper("/usr/bin/duly").wrap("job", command, "/bin/sh")
    if not command:
        return
    assert wrapped is not None

    handed, stdin = as_cron_hands_it_on(wrapped)

    words = split(handed)
    assert stdin == ""
    assert words[:5] == ["/usr/bin/duly", "exec", "job", "-q", "--"]
    got = [a_run().argument(word) for word in words[5:]]
    original, _ = as_cron_hands_it_on(command)
    assert got == ["/bin/sh", "-c", original] or got == split(original)
    again = unwrap(wrapped)
    assert again is not None
    assert again.command == command


def a_run() -> Briefing:
    """A run of which nothing is known: no text here has a placeholder that is one."""
    return Briefing(None, None, None, "", None)  # type: ignore[arg-type]


@given(parts=st.lists(st.sampled_from(["{", "}", "date", "label", "scope", "window.start", ":", "%d", "run.key", "x"])))
def test_a_literal_text_reaches_the_command_as_it_is(parts: list[str]) -> None:
    text = "".join(parts)

    assert a_run().argument(literal(text)) == text
    assert not_literal(literal(text)) == text


def test_a_placeholder_that_a_person_wrote_is_not_taken_out() -> None:
    wrapped = Wrapper("duly").wrap("job", "./close --day '{date}'", "/bin/sh")
    assert wrapped is not None

    assert unwrap(wrapped.replace("{{date}", "{date}")) is None


# -- what has to be known beside the file ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("/etc/crontab", "0 1 * * * root /opt/a\n", True),
        ("/etc/cron.d/a", "", True),
        ("/var/spool/cron/crontabs/root", "0 1 * * * root\n", False),
        ("mine", "0 1 * * * /opt/a\n", False),
        ("mine", "0 1 * * * cd /opt && ./a\n", False),
        ("mine", "0 1 * * * mail -s x y\n0 2 * * * ./a b\n", False),
        ("mine", "0 1 * * * root /opt/a\n", None),
        ("mine", "0 1 * * * mail -s x y\n", None),  # a user and a program
        ("mine", "0 1 * * * unheard-of /opt/a\n", None),
        ("mine", "# nothing\n", False),
        ("mine", "0 1 * * * duly exec a -- /opt/a\n", False),
        ("mine", "0 1 * * * root duly exec a -- /opt/a\n", True),
    ],
)
def test_whose_crontab_it_is(path: str, text: str, expected: bool | None) -> None:
    assert is_system(text, path, lambda word: word in ("root", "mail"), lambda word: word in ("cd", "mail")) is expected


def test_a_crontab_of_which_nobody_can_tell_is_refused(tmp_path: Path) -> None:
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * root /opt/a\n", encoding="utf-8")

    said = here(
        str(tmp_path / "l.db"), "import", "crontab", str(crontab), "--config", str(tmp_path / "d.toml"), "--zone", "UTC"
    )

    assert said.code == 64
    assert "say --system or --user" in said.talk


def test_the_zone_of_the_host_is_that_of_its_clock(tmp_path: Path) -> None:
    (tmp_path / "timezone").write_text("Europe/Berlin\n", encoding="ascii")

    assert host_zone(str(tmp_path)) == "Europe/Berlin"

    (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    assert host_zone(str(tmp_path)) == "Asia/Tokyo"


def test_a_zone_that_nothing_tells_is_none(tmp_path: Path) -> None:
    assert host_zone(str(tmp_path)) == ""


def test_cron_tz_means_what_the_cron_that_reads_it_makes_of_it() -> None:
    text = "CRON_TZ=Asia/Tokyo\n0 3 * * * /opt/a\n"

    def when(cron: str) -> When:
        (found,) = read_crontab(text, "c", Context(False, "Europe/Berlin", cron, duly="duly")).reading.jobs
        return found.when

    assert when("debian") == When(("0 3 * * *",), "Europe/Berlin")
    assert when("cronie") == When(("0 3 * * *",), "Asia/Tokyo", "skip", "both")
    with pytest.raises(Misuse, match="CRON_TZ"):
        when("")


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("*/60 3 * * *", ("0 3 * * *", "skip", "both")),
        ("*/90 * * * *", ("0 * * * *", "", "")),
        ("0 0 * * */8", ("0 0 * * 0", "", "")),
        ("0 0 1-31 * 1", ("0 0 1-31 * 1", "", "")),
        ("0 0 */2 * 1", ("0 0 */2 * 1", "", "")),
    ],
)
def test_a_line_that_duly_would_read_in_another_way_is_said_in_its_words(line: str, ours: tuple[str, str, str]) -> None:
    assert in_our_words(line.split()) == ours


@pytest.mark.parametrize(
    "line", ["0 0 * * fri-sun", "0 0 L * *", "0 0 15W * *", "0 0 * * mon#1", "0 0 ? * *", "1/5 * * * *"]
)
def test_what_only_duly_reads_is_not_imported(line: str) -> None:
    with pytest.raises(Left):
        in_our_words(line.split())


# -- names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("cd / && run-parts --report /etc/cron.hourly", "cron.hourly"),
        ("source /srv/venv/bin/activate && cd /srv && ./export.py --day x >> log 2>&1", "export"),
        ("/usr/bin/flock -n /tmp/l -c '/opt/x/sync.sh a'", "sync"),
        ("nice -n 19 ionice -c3 /usr/bin/rsync -a a b", "rsync"),
        ("[ -x /usr/lib/php/clean ] && if [ ! -d /run/systemd/system ]; then /usr/lib/php/clean; fi", "clean"),
        ('for f in *.csv; do /opt/load "$f" || break; done', "load"),
        ("php /srv/artisan schedule:run", "schedule-run"),
        ("python3 -m shop.nightly --all", "shop.nightly"),
        ("bash -lc 'cd x; bin/rake emails:send'", "emails-send"),
        ("docker exec -t web php /app/tidy.php", "tidy"),
        ("sudo -u app -- /opt/app/bin/close", "close"),
        ("timeout 5m java -jar /opt/report-1.2.jar", "report-1.2"),
        ("'unfinished", "unfinished"),
        ("&&", "job"),
        ("sleep $((RANDOM \\% 300)); /opt/close.sh", "close"),
        ("sleep $(( (RANDOM) % $(nproc) )) && /opt/close.sh", "close"),
        ("/opt/t", "opt-t"),
        ("cat /var/log/shop.log | grep -c error", "cat-shop.log"),
        ("/bin/echo hello", "echo-hello"),
        ("rm -rf /var/tmp/cache", "rm-cache"),
        ("cat /etc/motd | mail -s motd ops", "mail"),
    ],
)
def test_a_job_is_named_for_what_does_the_work(command: str, name: str) -> None:
    assert name_of(command) == name


# -- what was there before -------------------------------------------------------------------------------------------------


def test_a_name_that_is_taken_is_not_taken_again(tmp_path: Path) -> None:
    config = tmp_path / "duly.toml"
    config.write_text('[jobs.sync]\nperiod = "daily"\nzone = "UTC"\ncatch_up = "each"', encoding="utf-8")
    before = config.read_bytes()
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * /opt/sync\n0 2 * * * duly exec sync-2 -- /opt/other\n", encoding="utf-8")

    said = here(
        str(tmp_path / "l.db"), "import", "crontab", str(crontab), "--config", str(config), "--zone", "UTC", "--write"
    )

    assert said.code == 0, said
    assert "exec sync-3 -q --config" in crontab.read_text(encoding="utf-8")
    assert list(Layers([str(config)]).names()) == ["sync", "sync-3"]
    here(str(tmp_path / "l.db"), "import", "crontab", str(crontab), "--config", str(config), "--undo", "--write")
    assert config.read_bytes() == before + b"\n"


def test_an_import_that_was_cut_short_is_finished(tmp_path: Path) -> None:
    crontab, config = tmp_path / "c", tmp_path / "duly.toml"
    crontab.write_text("0 1 * * * /opt/sync\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config", str(config), "--zone", "UTC", "--write"]
    here(str(tmp_path / "l.db"), *words)
    written, declared = crontab.read_bytes(), config.read_bytes()
    crontab.write_text("0 1 * * * /opt/sync\n", encoding="utf-8")  # the configuration is written first

    here(str(tmp_path / "l.db"), *words)

    assert (crontab.read_bytes(), config.read_bytes()) == (written, declared)


@pytest.mark.parametrize(
    ("find", "put"),
    [
        ("[jobs.close]\n", '[jobs.close]\ngrace = "1h"\n'),
        ('"external"\n', '"external"\n# it may be slow\ngrace = "1h"\n'),
        ('"external"\n', '"external"\n\n[jobs.close.probe]\ncommand = ["./did-it"]\n'),
        ('"latest"', '"each"'),
    ],
)
def test_what_a_person_has_changed_stays(find: str, put: str, tmp_path: Path) -> None:
    crontab, config = tmp_path / "c", tmp_path / "duly.toml"
    crontab.write_text("0 1 * * * /opt/sync\n0 2 * * * /opt/close\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config", str(config)]
    here(str(tmp_path / "l.db"), *words, "--zone", "UTC", "--write")
    first, head, last = config.read_text(encoding="utf-8").rpartition("# Imported")
    config.write_text(first + head + last.replace(find, put), encoding="utf-8")

    said = here(str(tmp_path / "l.db"), *words, "--undo", "--write")

    assert said.code == 0
    assert "[jobs.close] was changed since it was imported, and stays" in said.talk
    assert crontab.read_text(encoding="utf-8") == "0 1 * * * /opt/sync\n0 2 * * * /opt/close\n"
    assert config.read_text(encoding="utf-8") == head + last.replace(find, put)
    assert list(Layers([str(config)]).names()) == ["close"]


def test_a_project_may_have_the_entries_too(tmp_path: Path) -> None:
    crontab, config = tmp_path / "c", tmp_path / "pyproject.toml"
    crontab.write_text("0 1 * * * /opt/sync\n", encoding="utf-8")
    config.write_text('[project]\nname = "shop"\n', encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config", str(config)]

    here(str(tmp_path / "l.db"), *words, "--zone", "UTC", "--write")

    assert list(Layers([str(config)]).names()) == ["sync"]
    assert "[tool.duly.jobs.sync]" in config.read_text(encoding="utf-8")
    here(str(tmp_path / "l.db"), *words, "--undo", "--write")
    assert config.read_text(encoding="utf-8") == '[project]\nname = "shop"\n'


def test_the_ledger_is_written_where_none_is_named_and_never_with_a_password(tmp_path: Path) -> None:
    crontab, config = tmp_path / "c", tmp_path / "duly.toml"
    crontab.write_text("0 1 * * * /opt/sync\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config", str(config), "--zone", "UTC"]

    refused = here(str(tmp_path / "l.db"), *words, "--ledger", "postgresql://duly:geheim@db/duly", "--write")
    said = here(str(tmp_path / "l.db"), *words, "--ledger", f"sqlite:///{tmp_path}/x.db", "--write")

    assert refused.code == 64
    assert "geheim" not in refused.talk + refused.out
    assert said.code == 0
    entry = Layers([str(config)]).ledger()
    assert entry is not None
    assert entry.url({}) == f"sqlite:///{tmp_path}/x.db"
    here(str(tmp_path / "l.db"), *words[:-2], "--undo", "--write")
    assert not config.exists()


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    from duly.adopt.files import Change, write
    from duly.errors import FileChanged

    first, second = tmp_path / "a", tmp_path / "b"
    second.write_text("new", encoding="utf-8")

    with pytest.raises(FileChanged):
        write([Change(str(first), None, b"x"), Change(str(second), b"old", b"y")])

    assert not first.exists()
    assert second.read_text(encoding="utf-8") == "new"


def test_what_somebody_changes_between_two_files_is_left_to_them(tmp_path: Path) -> None:
    from duly.adopt.files import Change, write
    from duly.errors import FileChanged

    configuration, crontab = tmp_path / "duly.toml", tmp_path / "crontab"
    crontab.write_bytes(b"old")

    class Interrupted(list[Change]):
        """Between the two files, once both were looked at, somebody adds a line to the second."""

        looks = 0

        def __iter__(self) -> Iterator[Change]:
            self.looks += 1
            for change in super().__iter__():
                if self.looks == 2 and change.path == str(crontab):
                    crontab.write_bytes(b"old and added")
                yield change

    both = Interrupted([Change(str(configuration), None, b"x"), Change(str(crontab), b"old", b"new")])
    with pytest.raises(FileChanged, match=r"left so, after .*duly\.toml was written"):
        write(both)

    assert crontab.read_bytes() == b"old and added"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crontab", "duly.toml"]


def test_what_a_killed_import_left_beside_a_file_goes_with_the_next(tmp_path: Path) -> None:
    from duly.adopt.files import Change, write

    crontab, left = tmp_path / "crontab", tmp_path / ".crontab.duly-4194305"  # above any pid there is
    crontab.write_bytes(b"old")
    left.write_bytes(b"hal")

    write([Change(str(crontab), b"old", b"new")])

    assert [path.name for path in tmp_path.iterdir()] == ["crontab"]
    assert crontab.read_bytes() == b"new"


def test_a_written_file_keeps_its_mode(tmp_path: Path) -> None:
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * /opt/sync\n", encoding="utf-8")
    crontab.chmod(0o640)

    here(
        str(tmp_path / "l.db"),
        "import",
        "crontab",
        str(crontab),
        "--config",
        str(tmp_path / "d"),
        "--zone",
        "UTC",
        "--write",
    )

    assert crontab.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "d"]


def test_secrets_of_a_crontab_are_shown_nowhere(tmp_path: Path) -> None:
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * /opt/sync --password=geheim0815 x\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config", str(tmp_path / "d"), "--zone", "UTC"]

    said = here(str(tmp_path / "l.db"), *words)
    as_json = here(str(tmp_path / "l.db"), *words, "--json")
    here(str(tmp_path / "l.db"), *words, "--write")

    assert "geheim" not in said.out + said.talk + as_json.out + as_json.talk
    assert "geheim" not in (tmp_path / "d").read_text(encoding="utf-8")
    assert "--password=geheim0815" in crontab.read_text(encoding="utf-8")


def test_the_crontab_of_standard_input_is_printed(tmp_path: Path) -> None:
    duly, config = a_duly(tmp_path), tmp_path / "d.toml"
    crontab = b"# a comment\n0 1 * * * /opt/sync\n"

    def piped(crontab: bytes, *flags: str) -> bytes:
        words = [duly, "import", "crontab", "-", "--config", str(config), *flags]
        return subprocess.run(words, input=crontab, capture_output=True, check=True).stdout

    wrapped = piped(crontab, "--zone", "UTC", "--duly", "duly", "--write")

    assert wrapped == f"# a comment\n0 1 * * * duly exec sync -q --config {config} -- /opt/sync\n".encode()
    assert config.exists()
    assert piped(wrapped, "--undo", "--write") == crontab
    assert not config.exists()


def test_dates_are_read_as_the_second_evaluator_reads_them() -> None:
    """The clock of the tests is right about the night that it is there for."""
    night = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)

    assert CronEntry("30 2 * * *").fires(ZoneInfo("Europe/Berlin"), *night) == {
        datetime(2026, 3, 28, 1, 30, tzinfo=UTC),
        datetime(2026, 3, 29, 1, 0, tzinfo=UTC),
    }


def test_a_prefix_keeps_the_jobs_of_hosts_apart(tmp_path: Path) -> None:
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * /opt/sync\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config", str(tmp_path / "d"), "--zone", "UTC"]

    said = here(str(tmp_path / "l.db"), *words, "--prefix", "web1-", "--json")
    refused = here(str(tmp_path / "l.db"), *words, "--prefix", "web 1/", "--write")

    assert [job["job"] for job in said.document["jobs"]] == ["web1-sync"]
    assert refused.code == 64
    assert crontab.read_text(encoding="utf-8") == "0 1 * * * /opt/sync\n"


# -- what is put around a command ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["p%q", "my tools", "50%%"])
def test_paths_with_a_percent_or_a_blank_reach_the_command_and_go_again(folder: str, tmp_path: Path) -> None:
    """A bare % ends the command of a line, and what is behind it is written to its input."""
    place = tmp_path / folder
    place.mkdir()
    crontab, config, home = tmp_path / "c", place / "duly.toml", tmp_path / "home"
    home.mkdir()
    original = "30 2 * * * echo worked > out\n30 3 * * * /bin/date\n"
    crontab.write_text(original, encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--user", "--config", str(config)]

    said = here(str(tmp_path / "l.db"), *words, "--zone", "UTC", "--duly", a_duly(place), "--write")

    assert said.code == 0, said
    line = crontab.read_text(encoding="utf-8").splitlines()[0].removeprefix("30 2 * * * ")
    poked = run_as_cron(line, home, {"DULY_LEDGER": f"sqlite:///{tmp_path}/l.db"})
    assert (poked.returncode, poked.stderr) == (0, b"")
    assert (home / "out").read_text(encoding="utf-8") == "worked\n"
    again = here(str(tmp_path / "l.db"), *words, "--zone", "UTC", "--duly", a_duly(place), "--json")
    assert (again.document["jobs"], again.document["already"]) == ([], 2)
    here(str(tmp_path / "l.db"), *words, "--undo", "--write")
    assert crontab.read_text(encoding="utf-8") == original
    assert not config.exists()


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--prefix", "web 1-"),
        ("--prefix", "-x"),
        ("--duly", "/opt/it's/duly"),
        ("--duly", "/opt/duly2"),
        ("--duly", "env A=b duly x"),
        ("--config", "/tmp/a'b/duly.toml"),
    ],
)
def test_a_flag_that_cannot_stand_in_a_line_is_named(flag: str, value: str, tmp_path: Path) -> None:
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * cd /opt && ./sync\n", encoding="utf-8")
    config = () if flag == "--config" else ("--config", str(tmp_path / "d"))

    said = here(str(tmp_path / "l.db"), "import", "crontab", str(crontab), *config, "--zone", "UTC", f"{flag}={value}")

    assert said.code == 64
    assert said.talk.startswith(f"duly: {flag}: ")


def test_a_zone_that_is_none_leaves_its_lines_and_no_others(tmp_path: Path) -> None:
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * /opt/a\nCRON_TZ=Foo/Bar\n0 2 * * * /opt/b\nCRON_TZ=UTC\n0 3 * * * /opt/c\n")
    words = ["import", "crontab", str(crontab), "--config", str(tmp_path / "d"), "--zone", "UTC", "--cron", "cronie"]

    said = here(str(tmp_path / "l.db"), *words, "--json")

    assert said.code == 1
    assert [job["job"] for job in said.document["jobs"]] == ["opt-a", "opt-c"]
    (left,) = [note for note in said.document["notes"] if not note["carried"]]
    assert (left["code"], left["line"]) == ("zone", 3)


# -- what may be read, and what is taken back --------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode_of_config", "is_shown"), [(0o644, False), (0o640, False), (0o600, True), (None, True)])
def test_a_command_is_shown_to_nobody_who_may_not_read_the_crontab(
    mode_of_config: int | None, is_shown: bool, tmp_path: Path
) -> None:
    """`mysqldump -phunter2`: nothing that looks like a secret to a program."""
    crontab, config = tmp_path / "c", tmp_path / "duly.toml"
    crontab.write_text("0 1 * * * mysqldump -phunter2 shop\n", encoding="utf-8")
    crontab.chmod(0o600)
    if mode_of_config is not None:
        config.write_text("# ours\n", encoding="utf-8")
        config.chmod(mode_of_config)
    words = ["import", "crontab", str(crontab), "--config", str(config)]

    here(str(tmp_path / "l.db"), *words, "--zone", "UTC", "--write")

    text = config.read_text(encoding="utf-8")
    assert ("hunter2" in text) == is_shown
    assert is_shown or f"#   {crontab}:1\n" in text
    assert config.stat().st_mode & 0o777 == (mode_of_config or 0o600)
    here(str(tmp_path / "l.db"), *words, "--undo", "--write")
    assert crontab.read_text(encoding="utf-8") == "0 1 * * * mysqldump -phunter2 shop\n"
    assert not config.exists() or config.read_text(encoding="utf-8") == "# ours\n"


def test_undo_that_takes_nothing_back_leaves_an_empty_configuration(tmp_path: Path) -> None:
    crontab, config = tmp_path / "c", tmp_path / "duly.toml"
    crontab.write_text("0 1 * * * /opt/sync\n", encoding="utf-8")
    config.write_text("", encoding="utf-8")

    said = here(str(tmp_path / "l.db"), "import", "crontab", str(crontab), "--config", str(config), "--undo", "--write")

    assert "nothing to take back" in said.talk
    assert config.exists()


def test_what_another_file_calls_stays_when_a_copy_of_its_lines_is_taken_back(tmp_path: Path) -> None:
    crontab, copy, config = tmp_path / "c", tmp_path / "copy", tmp_path / "duly.toml"
    crontab.write_text("0 1 * * * /opt/sync\n", encoding="utf-8")
    words = ["--config", str(config), "--undo", "--write"]
    here(str(tmp_path / "l.db"), "import", "crontab", str(crontab), *words[:2], "--zone", "UTC", "--write")
    copy.write_bytes(crontab.read_bytes())

    said = here(str(tmp_path / "l.db"), "import", "crontab", str(copy), *words)

    assert copy.read_text(encoding="utf-8") == "0 1 * * * /opt/sync\n"
    assert f"[jobs.sync] stays: {crontab}" in said.talk
    assert list(Layers([str(config)]).names()) == ["sync"]
    here(str(tmp_path / "l.db"), "import", "crontab", str(crontab), *words)
    assert crontab.read_text(encoding="utf-8") == "0 1 * * * /opt/sync\n"
    assert not config.exists()


def test_undo_without_the_configuration_says_which_one_the_lines_name(tmp_path: Path) -> None:
    crontab, config = tmp_path / "c", tmp_path / "duly.toml"
    crontab.write_text("0 1 * * * /opt/sync\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config"]
    here(str(tmp_path / "l.db"), *words, str(config), "--zone", "UTC", "--write")

    said = here(str(tmp_path / "l.db"), *words, str(tmp_path / "other.toml"), "--undo", "--write")

    assert (
        f"sync stays: the configuration that was looked at has no imported entry of it; it names --config {config}"
        in (said.talk)
    )


def test_a_job_that_the_ledger_knows_is_to_be_retired_when_it_is_taken_back(tmp_path: Path) -> None:
    crontab, config = tmp_path / "c", tmp_path / "duly.toml"
    crontab.write_text("0 1 * * * /bin/date\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config", str(config)]
    duly = a_duly(tmp_path)
    here(str(tmp_path / "l.db"), *words, "--zone", "UTC", "--duly", duly, "--write")
    line = crontab.read_text(encoding="utf-8").removeprefix("0 1 * * * ").rstrip("\n")
    run_as_cron(line, tmp_path, {"DULY_LEDGER": f"sqlite:///{tmp_path}/l.db"})

    said = here(str(tmp_path / "l.db"), *words, "--undo", "--write")

    step = "duly jobs retire date --reason 'import taken back'"
    assert step in said.talk
    assert here(str(tmp_path / "l.db"), *split(step)[1:]).code == 0


# -- what is said ------------------------------------------------------------------------------------------------------------


def test_the_last_window_that_cron_has_worked_can_be_put_on_record(tmp_path: Path) -> None:
    crontab, config, home = tmp_path / "c", tmp_path / "duly.toml", tmp_path / "home"
    home.mkdir()
    crontab.write_text("0 1 * * * /bin/touch out\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config", str(config), "--zone", "UTC", "--write"]
    said = here(str(tmp_path / "l.db"), *words, "--duly", a_duly(tmp_path))
    step = re.search(r"`duly (exec [^`]* -- true)`", said.talk)
    assert step is not None, said
    line = crontab.read_text(encoding="utf-8").removeprefix("0 1 * * * ").rstrip("\n")
    environment = {"DULY_LEDGER": f"sqlite:///{tmp_path}/l.db"}

    recorded = run_as_cron(f"{tmp_path}/duly {step[1]}", home, environment)
    poked = run_as_cron(line, home, environment)

    assert (recorded.returncode, poked.returncode) == (0, 0), recorded
    assert not (home / "out").exists()


def test_a_line_whose_times_were_changed_is_told_that_the_configuration_counts(tmp_path: Path) -> None:
    crontab, config = tmp_path / "c", tmp_path / "duly.toml"
    crontab.write_text("*/15 * * * * /opt/sync\n0 3 * * * /opt/close\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config", str(config), "--zone", "UTC"]
    here(str(tmp_path / "l.db"), *words, "--write")
    crontab.write_text(crontab.read_text(encoding="utf-8").replace("*/15", "*/1"), encoding="utf-8")

    said = here(str(tmp_path / "l.db"), *words, "--json")

    (note,) = [note for note in said.document["notes"] if note["code"] == "other_times"]
    assert note["line"] == 1
    assert "pokes sync at */1 * * * * in UTC" in note["says"]
    assert "says */15 * * * * in UTC: that counts" in note["says"]
    assert f"duly jobs apply sync --config {config} --reason" in note["says"]


def test_users_without_a_ledger_in_common_are_named(tmp_path: Path) -> None:
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * root /opt/sync\n0 2 * * * app /opt/close\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--system", "--config", str(tmp_path / "d"), "--zone", "UTC"]

    alone = here(str(tmp_path / "l.db"), *words)
    named = here(str(tmp_path / "l.db"), *words, "--ledger", f"sqlite:///{tmp_path}/l.db")

    assert "its lines run as app, root: each has a ledger of its own" in alone.talk
    assert "ledger of its own" not in named.talk


def test_a_private_crontab_of_others_says_who_has_to_read_the_configuration(tmp_path: Path) -> None:
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * app /opt/sync\n", encoding="utf-8")
    crontab.chmod(0o600)

    said = here(
        str(tmp_path / "l.db"),
        "import",
        "crontab",
        str(crontab),
        "--system",
        "--config",
        str(tmp_path / "d"),
        "--zone",
        "UTC",
    )

    assert "app must read it to poke: chmod 644" in said.talk


def test_what_is_printed_as_a_crontab_is_told_beside_it(tmp_path: Path) -> None:
    words = [
        a_duly(tmp_path),
        "import",
        "crontab",
        "-",
        "--config",
        str(tmp_path / "d.toml"),
        "--zone",
        "UTC",
        "--write",
    ]

    said = subprocess.run(words, input=b"0 1 * * * /opt/sync\n@reboot x\n", capture_output=True, check=False)

    assert said.returncode == 0
    assert said.stdout.endswith(b" -- /opt/sync\n@reboot x\n")
    assert b"sync   0 1 * * *   in UTC" in said.stderr
    assert f"created   {tmp_path}/d.toml".encode() in said.stderr
    assert b"-:2: left as it is: @reboot" in said.stderr


def test_a_line_that_stands_there_twice_is_said(tmp_path: Path) -> None:
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * /opt/sync\n0 1 * * * /opt/sync\n0 2 * * * /opt/sync\n", encoding="utf-8")

    said = here(
        str(tmp_path / "l.db"),
        "import",
        "crontab",
        str(crontab),
        "--config",
        str(tmp_path / "d"),
        "--zone",
        "UTC",
        "--json",
    )

    (note,) = [note for note in said.document["notes"] if note["code"] == "twice"]
    assert note["line"] == 2
    assert note["says"].startswith("does the same as line 1 ")


def test_a_proposal_answers_what_would_be_left_and_a_write_that_it_was_done(tmp_path: Path) -> None:
    """Or `… --write && crontab mine` would stop before the crontab, for a line that stays as it is."""
    crontab = tmp_path / "c"
    crontab.write_text("0 1 * * * /opt/sync\n@reboot /opt/worker\n", encoding="utf-8")
    words = ["import", "crontab", str(crontab), "--config", str(tmp_path / "d"), "--zone", "UTC"]

    codes = [here(str(tmp_path / "l.db"), *words, *more).code for more in ((), ("--write",), ("--write",))]

    assert codes == [1, 0, 0]


def test_no_file_is_written_twice(tmp_path: Path) -> None:
    from duly.adopt.files import Change, write

    (tmp_path / "link").symlink_to(tmp_path / "a")

    with pytest.raises(Misuse, match="written twice"):
        write([Change(str(tmp_path / "a"), None, b"x"), Change(str(tmp_path / "link"), None, b"y")])

    assert not (tmp_path / "a").exists()
