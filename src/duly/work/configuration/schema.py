"""The JSON Schema of a configuration, and the tables of its page, both from the one table of fields.

    python -m duly.work.configuration.schema > src/duly/work/configuration/duly.schema.json
    python -m duly.work.configuration.schema --page            what docs/configuration.md has between its marks

It says what single keys take, and what goes together only where JSON Schema has a word for it: a schedule, say, is understood
by the reader alone.
"""

from __future__ import annotations

import json
import sys

from duly.work.configuration.fields import ALERTS, DAEMON, DESTINATION, JOB, LEDGER, ORDER, POLICY, REDACT, SCHEDULE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from duly.work.configuration.fields import Field

_KINDS = ("period", "cron", "every")
_FORMS = ("url", "url_env", "url_file")


def schema() -> dict[str, Any]:
    """The schema of a `duly.toml`, and of `[tool.duly]`."""
    job = {
        **_table(JOB),
        **_at_most_one(_KINDS),
        "dependentRequired": {
            "period": ["zone", "catch_up"],
            "cron": ["catch_up"],
            "every": ["catch_up"],
            "calendar": ["days_off"],
            "days_off": ["calendar"],
            "replace": ["output"],
            "remembers": ["effect"],
        },
        "if": {"properties": {"effect": {"const": "idempotent"}}, "required": ["effect"]},
        "then": {"required": ["remembers"]},
        "else": {"properties": {"remembers": False}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "duly.toml",
        "description": "What duly is told by a file: its ledger, its jobs, its daemon, its destinations, who is told of what.",
        "type": "object",
        "properties": {
            "ledger": {**_table(LEDGER), **_at_most_one(_FORMS)},
            "jobs": {
                "type": "object",
                "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"},
                "additionalProperties": job,
            },
            "daemon": _table(DAEMON),
            "redact": _table(REDACT),
            "destinations": {
                "type": "object",
                "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"},
                # Beside these a kind has keys of its own.
                "additionalProperties": {**_table(DESTINATION), "required": ["kind"], "additionalProperties": True},
            },
            "alerts": _table(ALERTS),
        },
        "additionalProperties": False,
    }


def _table(fields: Mapping[str, Field]) -> dict[str, Any]:
    properties = {
        key: {"description": field.means.replace("`", ""), **field.kind.schema} for key, field in fields.items()
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _at_most_one(keys: tuple[str, ...]) -> dict[str, Any]:
    pairs = [(one, other) for place, one in enumerate(keys) for other in keys[place + 1 :]]
    return {"not": {"anyOf": [{"required": list(pair)} for pair in pairs]}}


def page() -> str:
    """The tables of the page: each key, what it takes, what it means."""
    parts = {
        "### `[ledger]`": LEDGER,
        "### `[jobs.NAME]`: what is run, and what is asked": {key: JOB[key] for key in ("command", "probe", "on_late")},
        "### `[jobs.NAME]`: when": SCHEDULE,
        "### `[jobs.NAME]`: policies": POLICY,
        "### `[jobs.NAME]`: how it is worked": ORDER,
        "### `[daemon]`": DAEMON,
        "### `[destinations.NAME]`": DESTINATION,
        "### `[alerts]`": ALERTS,
        "### `[redact]`": REDACT,
    }
    return "\n\n".join("\n".join([title, "", *_rows(fields)]) for title, fields in parts.items())


def _rows(fields: Mapping[str, Field]) -> list[str]:
    rows = [f"| `{key}` | {field.kind.words} | {field.means} |" for key, field in fields.items()]
    return ["| key | takes | means |", "|---|---|---|", *rows]


def text() -> str:
    """The schema as the file has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page() + "\n" if "--page" in sys.argv[1:] else text())
