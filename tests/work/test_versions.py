"""Versions in code: `version=` beside a schedule, as a deploy brings it to one host after the other."""

from __future__ import annotations

import sqlite3

import pytest

import duly
from duly.errors import NameInvalid
from duly.work.job import Job
from tests.work.bank import Bank, add_ten

Credit = Job[sqlite3.Connection]


def job(bank: Bank, schedule: duly.Schedule, version: str | None = None, *, inline: bool = False) -> Credit:
    declared = bank.ledger.job("credit", schedule, catch_up=duly.EACH, version=version, inline=inline)
    return declared(lambda run: add_ten(run.tx))


@pytest.mark.parametrize("inline", [False, True])
def test_a_deploy_brings_a_new_zone_with_its_label(bank: Bank, inline: bool) -> None:
    old = job(bank, duly.daily("UTC"), "2026-09-a", inline=inline)
    old.catch_up()
    new = job(bank, duly.daily("Europe/Berlin"), "2026-09-b", inline=inline)

    bank.clock.set("2026-09-17T12:00:00Z")
    done = [completed.key for completed in new.catch_up()]

    assert done == ["credit:2026-09-15[UTC]", "credit:2026-09-16[UTC]"], "what had begun by then, in its old zone"
    bank.clock.set("2026-09-19T12:00:00Z")
    assert [completed.key for completed in new.catch_up()] == [
        "credit:2026-09-17[UTC]",
        "credit:2026-09-18[Europe/Berlin]",
    ]


def test_the_old_host_of_a_rolling_deploy_is_refused_also_where_it_remembers_its_line(bank: Bank) -> None:
    old = job(bank, duly.daily("UTC"), "2026-09-a")
    old.run("2026-09-13")
    old.run("2026-09-12")  # from memory
    new = job(bank, duly.daily("UTC", at="06:00"), "2026-09-b")
    new.run("2026-09-11")

    with pytest.raises(duly.ScheduleChanged, match="2026-09-a of credit was replaced"):
        old.run("2026-09-10")
    with pytest.raises(ExceptionGroup) as raised:
        old.catch_up()

    assert raised.group_contains(duly.ScheduleChanged)
    new.run("2026-09-10")


def test_code_without_a_label_is_told_what_to_type(bank: Bank) -> None:
    job(bank, duly.daily("UTC")).run("2026-09-13")

    with pytest.raises(duly.ScheduleChanged) as raised:
        job(bank, duly.weekly("UTC")).run("2026-W37")

    assert raised.value.next_step == "duly jobs plan credit --period weekly --zone UTC"


def test_a_label_is_checked_where_it_is_given(bank: Bank) -> None:
    with pytest.raises(NameInvalid, match="version: 'next week' is no label"):
        job(bank, duly.daily("UTC"), "next week")
