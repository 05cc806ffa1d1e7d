"""A storm: a ledger whose runs have sent messages, relays as processes, a shop as one, and between them ways in which things
go wrong; relays and shop are killed by SIGKILL in the middle of it. What was promised is looked at while it goes on.

    once       a shop that remembers keys for two hours has each effect once, in the order of each run
    by a word  a shop that remembers nothing is sent nothing again before a probe or a person has said "not done"

Time is set by hand, in the ledger and in the shop: it goes on when relays have ended or were killed, now and then so far that
the shop forgets.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Any

import duly
from duly.ledger.messages import messages_of, resolve_message
from duly.ledger.records import RunId
from duly.ledger.resolve import Word
from duly.outbox.receiver import forget
from duly.times import HOUR, MINUTE, instant_text, parse_instant
from tests.books import Book, PostgresBook
from tests.outbox.way import BLIND, RELAY_KILLED, Request, Way, Weather

ROOT = Path(__file__).parents[2]
SOURCE = str(Path(duly.__file__).parents[1])  # of the duly that is tested
SECRET = "nobody-reads-this"  # it is in every body, and is to be nowhere else
REMEMBERS = 2 * HOUR
RELAY_ENDS = {0: "all is delivered", 75: "some wait", 80: "some are unknown", -signal.SIGKILL: "killed"}

ORDERS = """\
[destinations.orders]
kind = "http"
url = "{url}/orders"
look_up = "{url}/orders/{{key}}"
remembers = "2h"
concurrency = 8
"""
CALLS_AND_LETTERS = """\
[destinations.calls]
kind = "http"
url = "{url}/calls"
look_up = "{url}/calls/{{key}}"
remembers = "never"
concurrency = 4
[destinations.letters]
kind = "http"
url = "{url}/letters"
remembers = "never"
concurrency = 4
"""


class Broken(AssertionError):
    """A promise was broken."""


class Storm:
    """A ledger, a shop, and what is between them. `person` says what happened to messages that wait for one."""

    destinations: tuple[str, ...] = ("orders",)
    settings = ORDERS
    relays = 2

    def __init__(
        self, ledger: Book, shop: Book, folder: Path, *, seed: int, runs: int, each: int, faults: float
    ) -> None:
        self.ledger, self.shop = ledger, shop
        self.chance = Random(seed)
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []
        self.weather = Weather(seed, faults)
        self.requests: Counter[str] = Counter()
        self._passed: set[str] = set()  # keys of which the last request was answered
        self._first_sent: dict[
            str, tuple[str, int]
        ] = {}  # what was said of a key, after so many words that it was not done
        self._look_ups: Counter[str] = Counter()
        self._guard = threading.Lock()
        self._folder = folder
        self._now = ledger.clock.now()
        shop.amend(f"create table applied (id {_serial(shop)}, key text not null, body text not null)")
        self.names: dict[str, str] = {}
        self.bodies: dict[str, str] = {}
        self.runs: list[RunId] = []
        self._send(runs, each)
        self._shop = _Shop(shop.path)
        self.slots = [_Slot(self, number) for number in range(self.relays)]

    def _send(self, runs: int, each: int) -> None:
        """So many runs complete, with so many messages each."""
        opened: Any = duly.sqlite if not isinstance(self.ledger, PostgresBook) else duly.postgres
        ledger = opened(self.ledger.path)
        for name in self.destinations:
            ledger.destination(name)

        @ledger.job("push", duly.hourly("UTC"), catch_up=duly.EACH)  # type: ignore[untyped-decorator]  # of either kind
        def push(run: duly.Run[Any]) -> None:
            for number in range(each):
                name = f"{run.label}-{number:02}"
                to = self.destinations[number % len(self.destinations)]
                run.send(to, f"{name} {SECRET}", name=name)

        first = parse_instant("2026-10-06T00:00:00Z") - runs * HOUR
        for number in range(runs):
            push.run(instant_text(first + number * HOUR)[:13])
        ledger.close()
        found = self.ledger.rows("select idempotency_key, name, series, nominal, revision from duly_message")
        self.names = {key: name for key, name, *_ in found}
        self.bodies = {key: f"{name} {SECRET}" for key, name in self.names.items()}
        self.runs = sorted({RunId(*run) for _, _, *run in found}, key=lambda run: run.nominal)
        assert len(self.names) == runs * each

    # -- it goes by ------------------------------------------------------------------------------------------------------

    def go_by(self, *, most: int = 400) -> None:
        """Until every message is settled. Raises `Broken`."""
        for _ in range(most):
            if self.round():
                return
            self.between_rounds()
        raise Broken(f"after {most} rounds messages are left: {self.ledger.rows(LEFT)}")

    def round(self) -> bool:
        """Relays work until each has ended or was killed. True: all is settled."""
        self.counts["rounds"] += 1
        ended: SimpleQueue[_Slot] = SimpleQueue()
        for slot in self.slots:
            slot.start(ended)
        for alive in range(len(self.slots) - 1, -1, -1):
            slot = ended.get()
            self._note_end(slot)
            if slot.code == -signal.SIGKILL and alive:
                self.advance(2 * MINUTE)  # else what it held would be held for ever
        for slot in self.slots:
            slot.way.wait_until_quiet()
        self.look()
        return not self.ledger.rows(LEFT)

    def _note_end(self, slot: _Slot) -> None:
        if slot.code not in RELAY_ENDS:
            self.broken.append(f"a relay ended with {slot.code}: {slot.said.read_text()[-2000:]}")
        if slot.code == -signal.SIGKILL:
            held = self.ledger.rows("select idempotency_key, owner from duly_message where state = 'sending'")
            for key, owner in held:
                if f"/{slot.pid}@" in owner:
                    was_heard = key in self._passed
                    self.counts["lost: heard, not recorded" if was_heard else "lost: sending"] += 1

    def between_rounds(self) -> None:
        """Time goes on; now and then so far that the shop forgets keys."""
        if self.chance.random() < 0.15:
            self.advance(REMEMBERS + HOUR)
            with self.shop_ledger() as shop:
                self.counts["keys forgotten"] += forget(shop, "orders", by="ops@example")
            return
        self.advance(2 * MINUTE + self.chance.randrange(10) * MINUTE)

    def advance(self, by: int) -> None:
        self.ledger.clock.advance(by)
        self.shop.clock.advance(by)
        self._now = self.ledger.clock.now()

    @contextmanager
    def shop_ledger(self) -> Iterator[duly.Ledger[Any]]:
        opened: Any = duly.postgres if isinstance(self.shop, PostgresBook) else duly.sqlite
        ledger = opened(self.shop.path)
        try:
            yield ledger
        finally:
            ledger.close()

    # -- what happens on the ways ------------------------------------------------------------------------------------------

    def meets(self, request: Request) -> str | None:
        """A relay has begun a request: what goes wrong with it."""
        key = request.key
        if request.is_look_up:
            with self._guard:
                self._look_ups[key] += 1
                fault = self.weather.at(self.names[key], self._look_ups[key], BLIND)
                self.counts.update(["look-ups", *([fault] if fault else [])])
            return fault
        with self._guard:
            self.requests[key] += 1
            self._passed.discard(key)
            nth = self.requests[key]
        self.check_sending(request, nth)
        fault = self.weather.at(self.names[key], nth)
        with self._guard:
            self.counts["requests"] += 1
            if fault is not None and fault not in RELAY_KILLED:
                self.counts[fault] += 1
        return fault

    def passed(self, request: Request, status: int) -> None:
        """A relay has heard an answer."""
        if request.is_look_up:
            return
        with self._guard:
            self.counts[f"answers {status}"] += 1
            self._passed.add(request.key)
            if (
                status == 503
            ):  # "nothing was applied": what was sent before it does not count, if nothing before is in doubt
                self._first_sent.pop(request.key, None)

    def note_kill(self, fault: str) -> None:
        with self._guard:
            self.counts[fault] += 1

    # -- what was promised ---------------------------------------------------------------------------------------------------

    def check_sending(self, request: Request, nth: int) -> None:
        """The shop surely still knows the key of what is sent to it: it was first sent at most so long ago, and the relay says
        the same of that each time, or until somebody has said that nothing was done.
        """
        name, said = self.names[request.key], request.first_sent
        if self._now >= parse_instant(said) + REMEMBERS:
            self.broken.append(f"{name} was sent, first sent {said}: it may be forgotten")
        before, words = self._first_sent.get(request.key, (said, 0))
        if nth == 1 or said != before:
            known = len(self.denials(name)) if nth > 1 else 0
            if said != before and known == words:
                self.broken.append(f"{name} was first sent {before}, and then it was {said}")
            self._first_sent[request.key] = said, known

    def look(self) -> None:
        """Raise `Broken` where a promise was."""
        twice = self.shop.rows("select key, count(*) from applied group by key having count(*) > 1")
        self.broken += [f"{self.names[key]} was applied {many} times" for key, many in twice]
        if self.broken:
            raise Broken("\n".join(self.broken))

    def look_in_the_end(self) -> None:
        """Ledger and shop say the same, and nobody else has read a body. Raises `Broken`, or `AssertionError`."""
        self.look()
        applied = self.shop.rows("select key, body from applied order by id")
        assert dict(applied) == self.bodies
        assert len(applied) == len(self.bodies)
        place = {key: number for number, (key, _) in enumerate(applied)}
        for run in self.runs:
            messages = self.ledger.store.read(messages_of(run))
            assert {message.state for message in messages} == {"delivered"}
            assert [message.key for message in messages] == sorted(
                (m.key for m in messages), key=lambda key: place[key]
            )
        self._look_at_words()
        for slot in self.slots:
            assert SECRET not in slot.said.read_text()
        for table in ("duly_message_readable", "duly_event", "duly_message_attempt"):
            assert SECRET not in str(self.ledger.rows(f"select * from {table}")), table

    def _look_at_words(self) -> None:
        """Each message was delivered by the word of one attempt, of a probe or of a person, and by one alone."""
        by_attempt = Counter(
            name
            for (name,) in self.ledger.rows(
                """
select m.name from duly_message m join duly_message_attempt a
    on a.series = m.series and a.nominal = m.nominal and a.revision = m.revision and a.number = m.number
 where a.outcome = 'delivered'"""
            )
        )
        by_word = Counter(detail.split()[1] for detail in self.words() if ": done" in detail)
        for name in self.names.values():
            assert by_attempt[name] + by_word[name] == 1, (name, by_attempt[name], by_word[name])
        self.counts["closed by a probe: done"] = sum(": done: a probe" in detail for detail in self.words())
        self.counts["closed by a probe: not done"] = sum(": not done: a probe" in detail for detail in self.words())
        for outcome, many in self.ledger.rows("select outcome, count(*) from duly_message_attempt group by outcome"):
            self.counts[f"attempts {outcome}"] = many

    def words(self) -> list[str]:
        """What probes and persons have said."""
        return [
            detail for (detail,) in self.ledger.rows("select detail from duly_event where kind = 'message_resolved'")
        ]

    def denials(self, name: str) -> list[str]:
        """Each word of a probe or a person that a message was not delivered."""
        return [word for word in self.words() if word.startswith(f"message {name} ") and ": not done" in word]

    def close(self) -> None:
        for slot in self.slots:
            slot.close()
        self._shop.close()


class StormWithoutMemory(Storm):
    """A shop that remembers no key: `calls` can be looked for, and of `letters` a person says what happened."""

    destinations = ("calls", "letters")
    settings = CALLS_AND_LETTERS
    relays = 1  # time does not go on while it works: what it sends is there, or it is not

    def check_sending(self, request: Request, nth: int) -> None:
        """What was sent once is sent again only after so many words that it was not done."""
        if nth == 1:
            return
        name = self.names[request.key]
        words = len(self.denials(name))
        if words < nth - 1:
            self.broken.append(f"{name} was sent {nth} times, and {words} times it was said that it was not done")

    def between_rounds(self) -> None:
        self._ask_a_person()
        self.advance(2 * MINUTE + self.chance.randrange(10) * MINUTE)

    def _ask_a_person(self) -> None:
        """Of some letters that nobody knows about, somebody reads in the shop's books what happened. Others wait longer."""
        waiting = self.ledger.rows(
            """
select idempotency_key, series, nominal, revision, name from duly_message
 where destination = 'letters' and state = 'unknown' order by name"""
        )
        for key, series, nominal, revision, name in waiting:
            if self.chance.random() < 0.8:
                done = bool(self.shop.rows("select 1 from applied where key = ?", key))
                self.resolve(RunId(series, nominal, revision), name, done=done)
                self.counts["a person said: done" if done else "a person said: not done"] += 1

    def resolve(self, run: RunId, name: str, *, done: bool) -> None:
        """What a person says of a message."""
        word = Word("ops@example", "read their books")
        self.ledger.write(resolve_message(run, name, word, done=done))


LEFT = "select destination, state, count(*) from duly_message where state <> 'delivered' group by destination, state"


class _Shop:
    """The shop's process, and its children."""

    def __init__(self, place: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.outbox.shop", place, "2h"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": SOURCE},
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


class _Slot:
    """A place for one relay after the other, with a way of its own to the shop."""

    def __init__(self, storm: Storm, number: int) -> None:
        self._storm = storm
        self.folder = storm._folder / f"relay-{number}"
        self.folder.mkdir()
        self.said = self.folder / "said"
        self.way = Way(storm._shop.port, meets=self._meets, kill=self._kill, passed=storm.passed)
        (self.folder / "duly.toml").write_text(storm.settings.format(url=self.way.url))
        self._process: subprocess.Popen[bytes] | None = None
        self._fault: dict[int, str] = {}
        self.code, self.pid = 0, 0

    def start(self, ended: SimpleQueue[_Slot]) -> None:
        """A relay, as cron starts it; it is put where its end is waited for."""
        with self.said.open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "duly", "outbox", "deliver"],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, "PYTHONPATH": SOURCE, "DULY_LEDGER": self._storm.ledger.path},
            )
        self._process, self.pid = process, process.pid

        def wait() -> None:
            self.code = process.wait()
            ended.put(self)

        threading.Thread(target=wait, daemon=True).start()

    def _meets(self, request: Request) -> str | None:
        fault = self._storm.meets(request)
        self._fault[threading.get_ident()] = fault or ""
        return fault

    def _kill(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._storm.note_kill(self._fault[threading.get_ident()])
            self._process.kill()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
        self.way.close()


def _serial(book: Book) -> str:
    return "integer generated always as identity" if isinstance(book, PostgresBook) else "integer primary key"
