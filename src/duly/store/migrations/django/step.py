"""A step of the ledger as an operation of Django's, in the transaction of Django's migration."""

from __future__ import annotations

from typing import Any

from django.db import migrations, router
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.operations.base import Operation

from duly.store.migrations import apply, engine_of, statements, steps

BY = "django migrate"


def migration(number: int) -> type[migrations.Migration]:
    """Django's migration for the step of this number, which depends on the one before it."""
    names = {step.number: f"{step.number:04}_{step.name}" for step in steps("sqlite")}
    before = [("duly", names[number - 1])] if number > 1 else []
    return type("Migration", (migrations.Migration,), {"dependencies": before, "operations": [ApplyStep(number)]})


class ApplyStep(Operation):
    """Apply a step of the ledger, unless its record says that it was. No model knows of its tables."""

    reversible = True  # that it is not is said with its reason
    reduces_to_sql = True

    def __init__(self, number: int) -> None:
        self.number = number

    def state_forwards(self, app_label: str, state: Any) -> None:
        """No model changes."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        connection = schema_editor.connection
        if not router.allow_migrate(connection.alias, app_label):
            return
        if schema_editor.collect_sql:  # sqlmigrate: it prints, and looks at nothing
            (step,) = (step for step in steps(engine_of(connection.vendor)) if step.number == self.number)
            for statement in statements(step, by=BY):
                schema_editor.execute(statement, params=None)
            return
        with connection.cursor() as cursor:

            def run(statement: str) -> list[tuple[Any, ...]]:
                cursor.execute(statement)
                return list(cursor.fetchall()) if cursor.description else []

            apply(self.number, run, dialect=connection.vendor, by=BY)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        raise IrreversibleError(
            "duly: a ledger only grows, and what it holds is on record nowhere else: whether a run was done. "
            "Old code works on this schema; to be rid of a ledger, drop its tables by hand, then migrate with --fake"
        )

    def describe(self) -> str:
        return f"Apply step {self.number} of duly's ledger"
