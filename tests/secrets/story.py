"""Ten secrets and more, each in the place where such a thing is, in one story; and every byte that duly writes of it."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import quote

import psycopg

from tests.exec.stage import DAILY, Stage, environment, until

# Words that look like nothing: only their places say what they are. A few are of signs that are written differently elsewhere.
SECRETS = {
    "the ledger's password": "oak-river/71+lamp",
    "a variable of a job": "tin bridge&82 moss",
    "a word of a command line": "clay-harbour-93-fern",
    "what a child prints": "iron-meadow-14-dusk",
    "what a child complains": "salt-canyon-25-reed",
    "the message of an exception": "jade-orchard-36-mist",
    "a row that a database refuses": "flint-garden-47-dawn",
    "a payload": "amber-valley-58-snow",
    "the body of a message": "ebony-forest-69-rain",
    "a header of a destination": "Bearer coral-island-70-wind",
    "a signing secret": "whsec_c2lnbmluZy1zZWNyZXQtODEtc3Rvcm0=",
    "a password for mail": "maple-summit-92-gale",
    "what is received": "pearl-lagoon-03-tide",
    "what an answer repeats": "onyx-tundra-15-hail",
    "a word of an unknown module": "ruby-prairie-26-calm",
}
HOLD_BODIES = ("duly_message_body", "duly_answer")  # these tables are meant to

JOBS = """
import logging, os, sys
import duly

logging.basicConfig(level=logging.INFO)
logging.getLogger().handlers[0].setFormatter(logging.Formatter("%(message)s %(duly)s", defaults={"duly": ""}))
ledger = duly.KIND(os.environ["DULY_LEDGER"].removeprefix("sqlite:///"))
ledger.destination("bank"), ledger.destination("mail")
mark = "MARK"


@ledger.job("raises", duly.daily("UTC"), catch_up=duly.LATEST, retries=0)
def raises(run):
    raise ValueError("cannot log in with " + os.environ["SEED_RAISED"])


@ledger.job("violates", duly.daily("UTC"), catch_up=duly.LATEST, retries=0)
def violates(run):
    for _ in range(2):
        run.tx.execute(f"insert into seed_person values ({mark})", (os.environ["SEED_ROW"],))


@ledger.job("sends", duly.daily("UTC"), catch_up=duly.LATEST)
def sends(run):
    run.send("bank", {"iban": os.environ["SEED_BODY"]})
    run.send("mail", {"iban": os.environ["SEED_BODY"]})


@ledger.job("asked", duly.daily("UTC"), catch_up=duly.LATEST)
def asked(run):
    raise RuntimeError("not with " + os.environ["SEED_PAYLOAD"])


@ledger.job("says", duly.daily("UTC"), catch_up=duly.LATEST, retries=0)
def says(run):
    pass
"""

PROGRAM = """
import sys
from jobs import ledger, raises, violates, sends, asked, says, os, duly

for job in (raises, violates, sends):
    try:
        print(job.catch_up())
    except Exception as e:
        print(type(e).__name__)
try:
    asked.run("2026-11-27", payload={"pin": os.environ["SEED_PAYLOAD"]})
except Exception as e:
    print(type(e).__name__)
says.run("2026-11-26")
with ledger.take("says", "2026-11-27") as claim:
    try:
        raise RuntimeError("x\\nDETAIL:  Key (pin)=(" + os.environ["SEED_ROW"] + ") is there")
    except RuntimeError as e:
        claim.fail(str(e))
{receive}
"""

IN_SQLITE = """
import sqlite3
with sqlite3.connect(os.environ["DULY_LEDGER"].removeprefix("sqlite:///")) as connection:
    received = duly.receive(connection, "key-1", {"pin": os.environ["SEED_RECEIVED"]}, source="orders")
    received.answer(os.environ["SEED_RECEIVED"])
"""
IN_POSTGRES = IN_SQLITE.replace("sqlite3.connect", "psycopg.connect").replace("import sqlite3", "import psycopg")
IN_POSTGRES = IN_POSTGRES.replace('.removeprefix("sqlite:///")', "")

FILE = """
[ledger]
url_file = "ledger.url"

[redact]
variables = ["SEED_CHILD"]

[destinations.bank]
kind = "http"
url = "http://127.0.0.1:{port}/pay"
headers_env = {{ Authorization = "SEED_HEADER" }}
signing_secret_env = "SEED_SIGNING"
tries = 1

[destinations.mail]
kind = "smtp"
url = "smtp://robot@127.0.0.1:{port}"
starttls = "never"
from = "a@example.com"
to = "b@example.com"
password_env = "SEED_MAIL"
tries = 1

[jobs.prints]
command = ["sh", "-c", "{prints}", "sh", "--password", "{argv}"]
period = "daily"
zone = "UTC"
at = "06:00"
catch_up = "latest"
keep_output = "4k"
chronic = true
"""

IN_ONE = """
import json, sys
from duly.cli import main

for words in json.loads(sys.argv[1]):
    try:
        code = main(words)
    except SystemExit as e:
        code = e.code
    print(">>>", words[:2], code, flush=True)
"""

PRINTS = 'echo "pin $SEED_CHILD and $JOB_TOKEN and $2"; echo "password=$SEED_COMPLAINT" >&2'


class Told:
    """Every byte that was written, by where it was."""

    def __init__(self) -> None:
        self.bytes: dict[str, bytes] = {}

    def add(self, where: str, what: str | bytes) -> None:
        raw = what.encode("utf-8", "surrogateescape") if isinstance(what, str) else what
        self.bytes[where] = self.bytes.get(where, b"") + raw


def traces(told: Told, secret: str) -> list[str]:
    """Where a secret is found: plain, percent-encoded, in base64 (whatever stands before it) or in hex."""
    raw = secret.encode()
    forms = {
        raw,
        quote(secret, safe="").encode(),
        quote(secret).encode(),
        secret.replace(" ", "+").encode(),
        raw.hex().encode(),
    }
    for before in range(3):
        forms.add(base64.b64encode(b"\0" * before + raw)[(8 * before + 5) // 6 : 8 * (before + len(raw)) // 6])
    parts = [part.encode() for part in secret.split(" ") if len(part) > 8]  # without the word Bearer
    return sorted(where for where, what in told.bytes.items() for form in {*forms, *parts} if form in what)


class _Echo(BaseHTTPRequestHandler):
    """A bank that repeats whatever it is told."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        said = f"{self.headers['Authorization']} {SECRETS['what an answer repeats']}"
        self.send_response(422, said)
        self.send_header("X-Said", said)
        self.end_headers()
        self.wfile.write(body + said.encode())

    def log_message(self, *_: object) -> None: ...


@contextmanager
def _bank() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), _Echo)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def with_password(url: str) -> str:
    """The URL of a server that asks for none, with a password in it."""
    password = quote(SECRETS["the ledger's password"], safe="")
    return f"{url}{'&' if '?' in url else '?'}password={password}"


def tell(folder: Path, ledger: str | None, source: Path) -> Told:
    """The story, in a SQLite file or on a server, by the duly that is at `source`."""
    told = Told()
    stage = Stage(folder, ledger=ledger)
    on_server = ledger is not None
    url = with_password(ledger) if ledger is not None else f"sqlite:///{stage.path}"
    (folder / "ledger.url").write_text(url)
    _run_sql(stage, ledger, "create table seed_person (pin text unique)")
    kind, mark = ("postgres", "%s") if on_server else ("sqlite", "?")
    (folder / "jobs.py").write_text(JOBS.replace("KIND", kind).replace("MARK", mark))
    (folder / "program.py").write_text(PROGRAM.replace("{receive}", IN_POSTGRES if on_server else IN_SQLITE))
    (folder / "broken.py").write_text("import os\nraise ValueError('password=' + os.environ['SEED_MODULE'])\n")
    environ = environment(
        PYTHONPATH=f"{source}:{folder}",
        DULY_CONFIG=str(folder / "duly.toml"),
        JOB_TOKEN=SECRETS["a variable of a job"],
        SEED_CHILD=SECRETS["what a child prints"],
        SEED_COMPLAINT=SECRETS["what a child complains"],
        SEED_RAISED=SECRETS["the message of an exception"],
        SEED_ROW=SECRETS["a row that a database refuses"],
        SEED_PAYLOAD=SECRETS["a payload"],
        SEED_BODY=SECRETS["the body of a message"],
        SEED_HEADER=SECRETS["a header of a destination"],
        SEED_SIGNING=SECRETS["a signing secret"],
        SEED_MAIL=SECRETS["a password for mail"],
        SEED_RECEIVED=SECRETS["what is received"],
        SEED_MODULE=SECRETS["a word of an unknown module"],
    )
    in_environment = {**environ, "DULY_LEDGER": url}
    password, argv = SECRETS["the ledger's password"], SECRETS["a word of a command line"]
    del password

    def run(
        *words: str, where: str = "", env: dict[str, str] = environ, codes: Sequence[int] = (0,), strip: str = ""
    ) -> None:
        ended = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=env,
            capture_output=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert ended.returncode in codes, (words, ended.returncode, ended.stdout[-900:], ended.stderr[-900:])
        name = where or " ".join(words[2:5])
        told.add(f"{name}: stdout", ended.stdout.replace(strip, "") if strip else ended.stdout)
        told.add(f"{name}: stderr", ended.stderr.replace(strip, "") if strip else ended.stderr)

    def duly(*words: str, **more: object) -> None:
        run("-m", "duly", *words, **more)  # type: ignore[arg-type]

    with _bank() as port:
        escaped = PRINTS.replace("\\", "\\\\").replace('"', '\\"')
        (folder / "duly.toml").write_text(FILE.format(port=port, prints=escaped, argv=argv))
        run("program.py", where="program", env=in_environment)
        duly("exec", "prints", "-v", "--outcome-file", str(folder / "outcome.json"))
        duly("exec", "prints", "-v", "--log-format", "json", "--window", "2026-11-27", env=in_environment)
        failing = ("sh", "-c", f"echo {argv}; exit 3", "sh", "--password", argv)
        log = ("--log-format", "logfmt", "--ledger", url)
        duly("exec", "fails", *DAILY, *log, "--", *failing, codes=(3,), strip=argv)
        duly("exec", "absent", *DAILY, "--ledger", url, "--", f"./pay --password={argv}", codes=(127,))
        duly("exec", "new", "--ledger", url, "--", "true", "--password", argv, codes=(64,))
        duly(
            "exec",
            "raises",
            "--cron",
            "0 6 * * *",
            "--zone",
            "UTC",
            "--ledger",
            url,
            "--",
            "true",
            f"--token={argv}",
            codes=(78,),
        )
        duly("outbox", "deliver", codes=(0, 1, 79, 80))
        for form in ("text", "json"):
            stage.clock.advance("1d")
            _work_by_daemon(folder, form, in_environment, told)
    duly("daemon", "broken:ledger", codes=(78,), env=in_environment)
    duly("exec", "fails", "--ledger", with_password("postgresql://shop@127.0.0.1:1/x"), "--", "true", codes=(75,))
    views = [
        ["runs", "export", "2026-11-20..2026-11-29", "-o", str(folder / "export.jsonl")],
        ["metrics", "--textfile", str(folder / "duly.prom")],
        *(
            [*words, "--json"]
            for words in (["status"], ["runs"], ["runs", "events"], ["outbox", "list"], ["jobs", "list"])
        ),
        ["jobs", "check", "--json"],
        ["jobs", "check"],
        ["doctor", "--json"],
        ["doctor", "--ledger", url],
        ["runs", "show", "prints", "2026-11-28", "--json"],
        ["runs", "show", "prints", "2026-11-28"],
        ["runs", "show", "violates", "2026-11-28"],
        ["explain", "fails", "2026-11-28", "--ledger", url],
        ["explain", "violates", "2026-11-28", "--json"],
        ["outbox", "show", "sends", "2026-11-28", "--json"],
        ["status", "--ledger", url],
        ["retry", "fails", "2026-11-28", "--reason", "again", "--dry-run", "--ledger", url],
    ]
    run("-c", IN_ONE, json.dumps(views), where="views")  # one process: they only look
    for file in ("outcome.json", "export.jsonl", "duly.prom"):
        told.add(file, (folder / file).read_bytes())
    told.add("the ledger", _of_server(ledger) if ledger is not None else _of_file(stage.path, folder / "copy.db"))
    stage.close()
    return told


def _work_by_daemon(folder: Path, form: str, environ: dict[str, str], told: Told) -> None:
    """A day's work, all that is owed, by a daemon."""
    log = folder / f"daemon-{form}.log"
    with log.open("wb") as file:
        words = ("-m", "duly", "daemon", "jobs:ledger", "--log-format", form, "--poll", "50ms")
        daemon = subprocess.Popen([sys.executable, *words], cwd=folder, env=environ, stdout=file, stderr=file)
    try:
        one = b"attempt 1 " if form == "text" else b'"event": "attempt"'
        until(lambda: log.read_bytes().count(one) >= 6 or daemon.poll() is not None, "each of the jobs was attempted")
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)
    assert log.read_bytes().count(one) >= 6, log.read_text()
    told.add(f"daemon --log-format {form}", log.read_bytes())


def _run_sql(stage: Stage, ledger: str | None, sql: str) -> None:
    if ledger is None:
        with closing(sqlite3.connect(stage.path)) as connection, connection:
            connection.execute(sql)
    else:
        with psycopg.connect(ledger) as server:
            server.execute(sql.encode())


def _of_file(path: str, copy: Path) -> bytes:
    """The file, without the tables that hold bodies."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        for table in (*HOLD_BODIES, "seed_person"):
            assert connection.execute(f"select count(*) from {table}").fetchone() != (0,) or table == "seed_person"
            connection.execute(f"delete from {table}")
        connection.execute("vacuum")
    return copy.read_bytes()


def _of_server(url: str) -> bytes:
    """Every row of the schema, without the tables that hold bodies."""
    rows: list[str] = []
    with psycopg.connect(url) as server:
        tables = server.execute("select tablename from pg_tables where schemaname = 'duly'").fetchall()
        assert {name for (name,) in tables} >= set(HOLD_BODIES) or {f"duly_{name}" for (name,) in tables} >= set(
            HOLD_BODIES
        )
        for (name,) in tables:
            if name not in HOLD_BODIES and f"duly_{name}" not in HOLD_BODIES:
                found = server.execute(f'select t::text from duly."{name}" t'.encode())
                rows += [row for (row,) in found.fetchall()]
    return "\n".join(rows).encode()
