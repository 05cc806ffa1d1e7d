"""The kit itself: it tells each history once, tells it again, sees who waits for whom, and finds what is wrong."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from duly.errors import Conflict, LedgerUnavailable
from duly.ledger.ask import Ask, Statement
from duly.ledger.complete import has_completed
from duly.ledger.records import Claim, Line
from duly.schedule.spec import daily
from duly.testing import histories
from duly.testing.histories import Hand, History, HistoryFailed, Race, SqliteStage, Stage, check, every_history, replay
from duly.testing.histories.play import choices_text, parse_choices
from duly.testing.histories.points import touched_by
from tests.histories.races import RACES, book_of, completes, doubts, fails, held, lapsed_external, renews, works


def test_the_example_of_the_kit_runs(tmp_path: Path) -> None:
    """As it stands in its documentation, on a ledger of its own."""
    doc = histories.__doc__ or ""
    example = textwrap.dedent(doc[doc.index("    async def") : doc.index("A *race* is")])
    names: dict[str, Any] = {**vars(histories), "Claim": Claim, "daily": daily, "folder": tmp_path}

    exec(example, names)

    assert isinstance(names["history"], History)
    names["stage"].close()


def test_choices_are_read_as_they_are_printed() -> None:
    for text in ("3a.b+crash.clock.2a", "a", "2b+40001", "12a.b+lost-reply.2clock"):
        assert choices_text(parse_choices(text)) == text
    with pytest.raises(ValueError, match="is no choice"):
        parse_choices("3a.?")


def test_the_page_on_testing_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"folder": str(tmp_path)}

    for block in re.findall(
        r"^```python\n(?!# \w+\.py)(.*?)^```$", page, re.MULTILINE | re.DOTALL
    ):  # one that has a name is a file
        exec(block, names)

    assert names["seed"] == 99
    names["stage"].close()


# -- which histories are told -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("actors", [(fails, completes), (renews, doubts)], ids=["fail-complete", "renew-doubt"])
def test_nothing_that_can_be_told_apart_is_missed(postgres_stage: Stage, actors: Any) -> None:
    given = held if fails in actors else lapsed_external
    race = Race("both", lambda stage: given(book_of(stage)), actors)

    everything = [seen_by_each(history) for history in every_history(race, postgres_stage, reduced=False)]
    told = [seen_by_each(history) for history in every_history(race, postgres_stage)]

    assert set(told) == set(everything)
    assert len(everything) > 10 * len(told)


def seen_by_each(history: History) -> str:
    """All that each actor was answered, and the rows that are left."""
    answers = {actor.name: [] for actor in history.actors}  # type: dict[str, list[tuple[str, str]]]
    for line in history.lines:
        if line.answer != "waits for a lock":
            answers[line.actor].append((line.what.removeprefix("… "), line.answer))
    left = [(seen.run.state, seen.run.fence, seen.run.attempt_id) for seen in history.sights[-1]]
    return repr((answers, left, history.effects))


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_history_is_told_again_by_its_choices(database: str, request: pytest.FixtureRequest) -> None:
    stage: Stage = request.getfixturevalue(f"{database}_stage")
    choices = "6a.a+crash.3b.clock.b" if database == "postgres" else "6a.a+crash.clock.3b"

    first, second = (replay(RACES["take-over-complete"], stage, choices) for _ in range(2))

    assert same(first.story()) == same(second.story())
    assert first.choices[: len(parse_choices(choices))] == parse_choices(choices)
    assert "crashed" in first.story()


def same(story: str) -> str:
    """A story, whatever ids the database gave out for the series and its job."""
    return re.sub(r"series=\d+", "series", story)


def test_choices_that_do_not_fit_are_refused(sqlite_stage: Stage) -> None:
    with pytest.raises(ValueError, match="cannot be chosen here"):
        replay(RACES["take-complete"], sqlite_stage, "c")


def test_a_function_that_a_user_calls_is_never_taken_for_a_look() -> None:
    def touched(sql: str) -> histories.points.Touched:
        return touched_by(Ask("count", Statement("a user's", sql), {}))

    called, held, seen = map(
        touched,
        ("select duly.complete(:attempt_id)", "select day\n  from exported\n   for update", "select day from exported"),
    )

    assert "*" in called.changes
    assert "exported" in held.changes
    assert ("exported" in seen.reads, seen.changes) == (True, frozenset())


def test_a_line_that_is_held_or_written_is_never_taken_for_one_that_is_only_named() -> None:
    held, named = "select l.id from duly_line l where l.id = 1 {lock}", "select l.scope from duly_line l where l.id = 1"
    added = "insert into duly_line (job, scope) values (1, '')"

    hold, name, add = (touched_by(Ask("one", Statement("", sql), {})) for sql in (held, named, added))

    assert hold.locks == {"line"}
    assert name.reads == name.locks == frozenset()
    assert add.changes == {"line"}
    assert add.locks == {"line", "job"}


@pytest.mark.parametrize("column", [*Line.__match_args__[2:]])
def test_whoever_looks_at_what_of_a_line_may_change_reads_it(column: str) -> None:
    looked = touched_by(Ask("one", Statement("", f"select l.{column} from duly_line l where l.id = 1"), {}))

    assert looked.reads == {"line"}


# -- waiting ------------------------------------------------------------------------------------------------------------


def in_order(first: str, second: str) -> Any:
    """A caller who changes two rows of its own, one after the other."""

    async def script(hand: Hand, given: None) -> None:
        async with hand.transaction():
            await hand.execute("insert into duly_output values (1, :row, 1, :me, '', 0, '', 0)", row=ord(first), me=b"")
            await hand.execute(
                "insert into duly_output values (1, :row, 1, :me, '', 0, '', 0)", row=ord(second), me=b""
            )

    return script


def test_who_waits_for_a_lock_lets_the_other_go_on(postgres_stage: Stage) -> None:
    race = Race("same-order", lambda stage: None, (in_order("x", "y"), in_order("x", "y")))

    history = replay(race, postgres_stage, "2a.2b")

    waits = [(line.actor, line.answer) for line in history.lines].index(("b", "waits for a lock"))
    assert [line.actor for line in history.lines[waits + 1 :]] == ["a", "a", "b", "b"]


def test_those_who_wait_for_each_other_are_told_so_at_once(postgres_stage: Stage) -> None:
    race = Race("ring", lambda stage: None, (in_order("x", "y"), in_order("y", "x")))

    history = replay(race, postgres_stage, "2a.2b.a.b")

    assert [type(actor.error) for actor in history.actors].count(Conflict) == 1
    with pytest.raises(HistoryFailed, match="transactions met in a ring"):
        check(history)


# -- faults -------------------------------------------------------------------------------------------------------------


async def doubtful_worker(hand: Hand, claim: Claim) -> object:
    """It loses the reply of its commit, and asks the ledger what came of it."""
    try:
        await hand.finish(claim)
    except LedgerUnavailable:
        return await hand.write(has_completed(claim))
    return "completed"


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize(("fault", "done"), [("lost-reply", True), ("crash", False), ("crash-after", True)])
def test_a_commit_is_or_is_not_whatever_its_caller_hears(
    database: str, fault: str, done: bool, request: pytest.FixtureRequest
) -> None:
    race = Race("doubtful", lambda stage: held(book_of(stage)), (doubtful_worker,))

    history = check(replay(race, request.getfixturevalue(f"{database}_stage"), f"4a.a+{fault}"))

    assert history.lines[4].what == "commit"
    assert bool(history.effects) == done
    assert history.actors[0].answer == (True if fault == "lost-reply" else None)


def test_a_serialization_failure_leaves_nothing_and_is_told_as_a_conflict(postgres_stage: Stage) -> None:
    history = check(replay(RACES["complete-complete"], postgres_stage, "3a.a+40001.a"))

    assert isinstance(history.actors[0].error, Conflict)
    assert history.effects == [b"g000000000000001"]  # the other one's


@pytest.mark.parametrize("fault", ["crash", "cancel"])
def test_a_statement_that_waits_can_be_cancelled_and_its_process_can_die(postgres_stage: Stage, fault: str) -> None:
    history = check(replay(RACES["complete-complete"], postgres_stage, f"3a.3b.b+{fault}"))

    assert ("b", "waits for a lock") in [(line.actor, line.answer) for line in history.lines]
    assert history.actors[0].answer == "completed"


# -- what is found ------------------------------------------------------------------------------------------------------


def test_a_broken_history_is_told_with_what_is_wrong_and_how_to_see_it_again(tmp_path: Path) -> None:
    async def cheats(hand: Hand, claim: Claim) -> None:
        async with hand.transaction():
            await hand.effect(claim.attempt_id)

    stage = SqliteStage(tmp_path)
    race = Race("cheats", lambda stage: held(book_of(stage)), (cheats, works()))

    with pytest.raises(HistoryFailed) as failure:
        check(next(every_history(race, stage)), again="python -m mine")

    story = str(failure.value)
    assert "   2  a  effect" in story
    assert "2026-10-04T00:00 running, fence 1 g1" in story
    assert "broken: effects_and_completions_commit_together" in story
    assert "again: python -m mine 3a" in story
    stage.close()


def test_a_script_may_await_only_its_hand(sqlite_stage: Stage) -> None:
    class Foreign:
        def __await__(self) -> Any:
            return (yield 7)

    async def script(hand: Hand, given: None) -> None:
        await Foreign()

    with pytest.raises(TypeError, match="it may await only what its hand offers"):
        replay(Race("foreign", lambda stage: None, (script,)), sqlite_stage, "")
