"""Many messages while relays are killed, answers are swallowed and the clock jumps: to a receiver that remembers keys, and to
one that does not and can be asked. Each effect has to be there once, in the order of its run.

    python -m campaigns.outbox [MESSAGES] [SEED]
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from time import monotonic

from tests.books import Book, PostgresBook
from tests.outbox.mortal import POINTS
from tests.outbox.post import Post
from tests.outbox.receivers import Receiver, receiver
from tests.servers import MACHINES_OWN, Server, answers

from duly.times import MINUTE

ROOT = Path(__file__).parents[1]
OF_A_RUN = 4


def main(messages: int, seed: int) -> None:
    """On SQLite, and on the machine's own PostgreSQL where there is one."""
    for remembers in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            tell(Book(Path(folder) / "jobs.db"), remembers=remembers, messages=messages, chance=random.Random(seed))
        if answers(MACHINES_OWN):
            server = Server(MACHINES_OWN)
            try:
                book = PostgresBook(server.new_database())
                tell(book, remembers=remembers, messages=messages, chance=random.Random(seed))
            finally:
                server.close()


def tell(book: Book, *, remembers: bool, messages: int, chance: random.Random) -> None:
    """Send them, let relays die over them, and see what the receiver has."""
    began = monotonic()
    post, runs = Post(book), []
    book.job()
    for number in range(messages // OF_A_RUN):
        day = str(date(2015, 1, 1) + timedelta(number))
        runs.append(post.complete(book.take(day), *(f"{day}-{name}" for name in "abcd"[:OF_A_RUN])))
    deaths: Counter[str] = Counter()
    with receiver(remembers=remembers) as to:
        while not all(post.tally(run).is_settled for run in runs):
            point = chance.choice((*POINTS, "none"))
            if chance.random() < 0.3:
                to.swallows = chance.randrange(1, 4)
            deaths[point] += (
                relay(book, to, "forever" if remembers else "never", point, chance.randrange(messages // 40 + 1)) < 0
            )
            book.clock.advance(5 * MINUTE)
        wrong = {key: times for key, times in to.effects.items() if times != 1}
        assert not wrong, wrong
        assert len(to.effects) == len(runs) * OF_A_RUN
        for key, following in zip(to.order, to.order[1:], strict=False):
            assert key[:-1] != following[:-1] or key < following, (key, following)
        again = sum(to.requests.values()) - len(to.effects)
    kind = "remembers" if remembers else "forgets and can be asked"
    print(
        f"{type(book).__name__}: {messages} messages to a receiver that {kind}: each effect once; {sum(deaths.values())} "
        f"relays killed ({dict(deaths)}), {again} requests repeated, {monotonic() - began:.0f} s",
        flush=True,
    )


def relay(book: Book, to: Receiver, remembers: str, point: str, after: int) -> int:
    """A relay that works until nothing is due, or it dies; how it ended."""
    words = [sys.executable, "-m", "tests.outbox.mortal", book.path, to.url, remembers, point, str(after)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if "Traceback" in ended.stderr:
        raise AssertionError(ended.stderr)
    return ended.returncode


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*(given + [10_000, 1][len(given) :]))
