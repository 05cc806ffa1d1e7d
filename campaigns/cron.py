"""Debian's cron and anacron, as they are, call `duly exec`: what is promised of a poke holds with what really pokes.

Two crons, each with an /etc of its own, call the same lines each minute, which share ledgers on SQLite and on PostgreSQL: each
minute is worked once, and nobody is sent a mail of it. A job that fails is told of. anacron stamps the day on which a job
failed, and duly says what is so. It takes four minutes, since cron knows no shorter time, and wants root for namespaces.

    python -m campaigns.cron            go on
    python -m campaigns.cron PIECE      tell one piece again: crons, anacron
"""

from __future__ import annotations

import os
import pwd
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.exec.stage import environment, until

from campaigns.apart import Apart, can_be_apart, duly_in, unpacked
from campaigns.histories import server
from campaigns.progress import Progress

SHIPPED = Path(__file__).parents[1] / "share" / "cron"
MINUTES = 3
PATIENCE = 60.0 * (MINUTES + 2)

# What a cron finds: an /etc as the machine's with no lines but ours, a spool, and a sendmail that keeps what it is given.
WITHIN = """
cp -a /etc /mnt/etc
rm -rf /mnt/etc/cron* /mnt/etc/anacrontab
mkdir -p /mnt/etc/cron.d /mnt/etc/pam.d /mnt/spool/cron/crontabs /mnt/sbin /mnt/theirs
printf 'auth required pam_permit.so\\naccount required pam_permit.so\\nsession required pam_permit.so\\n' > /mnt/etc/pam.d/cron
install -m 644 "$1/system" /mnt/etc/cron.d/duly
install -m 600 "$1/user" /mnt/spool/cron/crontabs/root
mount --bind /mnt/etc /etc
mount --bind /mnt/spool /var/spool
mount --bind /usr/sbin /mnt/theirs
for program in /mnt/theirs/*; do ln -s "$program" /mnt/sbin/; done
rm -f /mnt/sbin/sendmail
install -m 755 "$1/sendmail" /mnt/sbin/sendmail
mount --bind /mnt/sbin /usr/sbin
"$3" -n "$4"
exec "$2" -f -L 15
"""

SENDMAIL = """#!/bin/sh
file=$(mktemp {folder}/mail/XXXXXXXX)
cat > "$file"
mv "$file" "$file.mail"
"""

# The first is on SQLite and the second on PostgreSQL. The third fails, the fourth is noisy and well, the fifth is a user's own.
SYSTEM = """MAILTO=operations
DULY_LEDGER=sqlite:///{folder}/ledger.db
URL={url}
D={duly}
F={folder}
* * * * *  root  $D exec tick -q --cron "* * * * *" --zone UTC -- sh -c 'echo "$DULY_RUN_KEY" >> $F/ticks; env > $F/seen'
* * * * *  root  $D exec tock -q --ledger $URL --cron "* * * * *" --zone UTC -- sh -c 'echo "$DULY_RUN_KEY" >> $F/tocks'
* * * * *  root  $D exec fails -q --period daily --zone UTC -- sh -c 'echo tried >> $F/tries; echo "no bank"; exit 3'
* * * * *  root  $D exec noisy -q --chronic --cron "* * * * *" --zone UTC -- sh -c 'echo "$DULY_RUN_KEY" >> $F/noise; echo so'
"""
USER = """MAILTO=somebody
DULY_LEDGER=sqlite:///{folder}/ledger.db
* * * * *  {duly} exec mine -q --cron "* * * * *" --zone UTC -- sh -c 'echo {{label}} \\% >> {folder}/mine'
"""


def crons(folder: Path) -> str:
    """Two crons and their five lines, for three minutes."""
    program = unpacked("cron", "cron")
    if program is None:
        raise SystemExit("Debian's cron is not here, and its package could not be had")
    (folder / "mail").mkdir()
    words = {"folder": folder, "duly": duly_in(folder)}
    with server() as found, found.ledger(clock="system") as url:
        (folder / "system").write_text(SYSTEM.format(url=url, **words))
        (folder / "user").write_text(USER.format(**words))
        (folder / "sendmail").write_text(SENDMAIL.format(**words))
        # Beside them crontab looks at the lines that ship (-n: nothing is installed).
        given = [str(each) for each in (folder, program, unpacked("cron", "crontab"), SHIPPED / "user")]
        both = [Apart(WITHIN, *given, environ={}, log=folder / f"cron-{name}.log") for name in ("a", "b")]
        try:
            files = {"ticks": "tick", "tocks": "tock", "noise": "noisy"}
            until(lambda: has_ended(both) or has_come(folder, files), "three minutes", seconds=PATIENCE)
            assert not has_ended(both), (folder / "cron-a.log").read_text()
            time.sleep(15)  # for the second of two that came at once, and for mail
        finally:
            for cron in both:
                cron.close()
    for file, job in files.items():
        assert_each_minute_once(lines(folder / file), job)
    own = lines(folder / "mine")
    assert len(own) >= MINUTES, own
    assert len({*own}) == len(own), own
    assert all(line.endswith(" %") for line in own), own
    assert lines(folder / "tries") == ["tried"], "a failure that waits for a person was tried again"
    assert_what_a_command_sees(folder / "seen")
    return f"{assert_only_the_failure_was_mailed(folder / 'mail')} mails of a failure, {len(lines(folder / 'ticks'))} minutes"


def has_ended(crons: list[Apart]) -> bool:
    return any(cron.process.poll() is not None for cron in crons)


def has_come(folder: Path, files: Iterable[str]) -> bool:
    return all(len(lines(folder / file)) >= MINUTES for file in files)


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def assert_each_minute_once(keys: list[str], job: str) -> None:
    """None is there twice, and none is left out between the first and the last."""
    seen = [datetime.fromisoformat(key.removeprefix(f"{job}:").replace("Z", "+00:00")) for key in keys]
    assert seen == [seen[0] + timedelta(minutes=n) for n in range(len(seen))], keys


def assert_only_the_failure_was_mailed(folder: Path) -> int:
    mails = [file.read_text() for file in folder.glob("*.mail")]
    others = [mail for mail in mails if not re.search(r"^Subject: .* exec fails ", mail, re.MULTILINE)]
    assert not others, others[0]
    assert sum(mail.count("\n\nno bank\n") for mail in mails) == 1, "what the command said was mailed once"
    assert all("To: operations" in mail for mail in mails), mails[0]
    return len(mails)


def assert_what_a_command_sees(file: Path) -> None:
    """cron's own few variables and duly's, and not the ledger's address."""
    seen = dict(line.split("=", 1) for line in lines(file) if "=" in line)
    assert seen["PATH"] == "/usr/bin:/bin", seen
    assert seen["DULY_JOB"] == "tick", seen
    assert "DULY_LEDGER" not in seen, seen
    assert seen["HOME"] == pwd.getpwuid(0).pw_dir, seen


def anacron(folder: Path) -> str:
    """anacron writes its stamp though the command failed; the ledger says what is so, and works it at the next poke."""
    program = unpacked("anacron", "anacron")
    if program is None:
        raise SystemExit("Debian's anacron is not here, and its package could not be had")
    duly = duly_in(folder)
    spool = folder / "spool"
    spool.mkdir()
    ledger = folder / "ledger.db"
    flags = "--period daily --zone UTC --retries 3 --no-retry --clean-exits 3"
    command = (
        f"sh -c 'echo tried >> {folder}/tries; test -e {folder}/bank || exit 3; echo \"$DULY_DATE\" >> {folder}/done'"
    )
    (folder / "anacrontab").write_text(
        f"PATH=/usr/bin:/bin\nDULY_LEDGER=sqlite:///{ledger}\n1 0 close-day {duly} exec close-day {flags} -- {command}\n"
    )
    call = [str(program), "-d", "-n", "-s", "-t", str(folder / "anacrontab"), "-S", str(spool)]

    def poke() -> None:
        ended = subprocess.run(call, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr

    def check() -> int:
        words = [str(duly), "check", "close-day", "--ledger", str(ledger)]
        return subprocess.run(words, env=environment(), capture_output=True, check=False).returncode

    poke()
    stamp = (spool / "close-day").read_text().strip()
    assert re.fullmatch(r"\d{8}", stamp), stamp
    assert lines(folder / "tries") == ["tried"]
    assert check() != 0, "a stamp was taken for a completion"
    poke()  # anacron has the day on its stamp, and does nothing
    assert lines(folder / "tries") == ["tried"]
    with sqlite3.connect(ledger) as connection:
        (retry_at,) = connection.execute("select retry_at from duly_run").fetchone()
    (folder / "bank").touch()
    until(lambda: time.time() * 1_000_000 > retry_at, "its retry time", seconds=120)
    subprocess.run([*call, "-f"], capture_output=True, check=True)  # whatever the stamp says: any other poke would do
    yesterday = (datetime.now(tz=UTC) - timedelta(days=1)).date().isoformat()
    assert lines(folder / "done") == [yesterday]
    assert check() == 0
    subprocess.run([*call, "-f"], capture_output=True, check=True)
    assert lines(folder / "tries") == ["tried", "tried"]
    return "the stamp of a failed day was no completion"


PIECES = {"crons": crons, "anacron": anacron}


@contextmanager
def place() -> Iterator[Path]:
    """A folder of a campaign's, which every user may read."""
    with tempfile.TemporaryDirectory(prefix="duly-cron-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def main(wanted: list[str]) -> int:
    """Go on, or tell what is named."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what it has begun is ended
    if not can_be_apart():
        print("campaigns.cron wants root, and a kernel that gives it namespaces; nothing was told")
        return 0
    progress = Progress("cron")
    for name, piece in PIECES.items():
        if (wanted and name not in wanted) or (not wanted and progress.has(name)):
            continue
        with place() as folder:
            told = piece(folder)
        progress.note(name, told)
        print(f"{name}: {told}", flush=True)
    print("cron and anacron poke, and each window was worked once")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
