"""Words: spans of time as people say them, and what others wrote as a terminal may show it."""

from __future__ import annotations

from itertools import pairwise

from duly.times import DAY, HOUR, MINUTE, SECOND


def span(micros: int) -> str:
    """About how long, in at most two units: `42m`, `3h12m`, `2d4h`, `45s`."""
    micros = abs(micros)
    units = (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND))
    for (name, size), (smaller, small) in pairwise(units):
        if micros >= size:
            rest = micros % size // small
            return (
                f"{micros // size}{name}{rest}{smaller}" if rest and micros < 10 * size else f"{micros // size}{name}"
            )
    return f"{micros // SECOND}s"


def printable(text: str) -> str:
    """The same text; what is no letter, sign or end of a line stands as its escape."""
    return "".join(sign if sign.isprintable() or sign == "\n" else ascii(sign)[1:-1] for sign in text)


def ago(instant: int, now: int) -> str:
    """An instant as seen from now: `42m ago`, `in 3h`."""
    return f"{span(now - instant)} ago" if instant <= now else f"in {span(instant - now)}"
