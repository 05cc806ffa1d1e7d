"""A wrapper as somebody would write it: claim the run with a row, run the command, say that it is complete. No lease, no guard,
no schedule, no evidence; a run whose process was killed is claimed for ever. `start.py` measures it beside `duly exec`.

    python by_hand.py --url URL JOB RUN COMMAND …
"""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime

import typer
from sqlalchemy import Column, DateTime, MetaData, String, Table, create_engine, insert, select, update
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

runs = Table(
    "by_hand_run",
    MetaData(),
    Column("job", String, primary_key=True),
    Column("run", String, primary_key=True),
    Column("claimed_at", DateTime(timezone=True), nullable=False),
    Column("completed_at", DateTime(timezone=True)),
)


def main(job: str, run: str, command: list[str], url: str = typer.Option(...)) -> None:
    """Run a command once for a run of a job."""
    engine = create_engine(url)
    this = (runs.c.job == job, runs.c.run == run)
    try:
        with engine.connect() as connection:
            known = connection.execute(select(runs.c.completed_at).where(*this)).first()
    except (OperationalError, ProgrammingError):
        runs.create(engine)
        known = None
    if known is not None:
        raise typer.Exit(0)
    try:
        with engine.begin() as connection:
            connection.execute(insert(runs).values(job=job, run=run, claimed_at=datetime.now(UTC)))
    except IntegrityError as e:
        raise typer.Exit(0) from e
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        with engine.begin() as connection:
            connection.execute(update(runs).where(*this).values(completed_at=datetime.now(UTC)))
    raise typer.Exit(code)


if __name__ == "__main__":
    typer.run(main)
