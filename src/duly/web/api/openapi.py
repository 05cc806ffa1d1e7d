"""OpenAPI: the API described, from the very records that it is made of. `python -m duly.web.api.openapi` prints it.

It is the same each time, but for where the server stands and whether somebody has to say who they are. A copy is
docs/openapi.json, and a test says when that is old.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from duly.evidence.documents.schemas import SCHEMAS, of
from duly.ledger.receive import LONGEST_KEY
from duly.outbox.receiver.http import KEY, REPLAYED
from duly.web.actions import ACTIONS
from duly.web.api import PREFIX
from duly.web.api.body import JSON
from duly.web.api.problems import KIND, REASONS
from duly.web.api.reads import READS
from duly.web.api.values import FLAG, JOB, is_required, schema_of

if TYPE_CHECKING:
    from typing import Any

    from duly.web.action import Action
    from duly.web.api.read import Read
    from duly.web.api.values import Schema

_SIGN = r"[!#-+\--:<-\[\]-~]"
_QUOTED = r'(?:[!#-\[\]-~]|\\["\\])'
KEY_PATTERN = rf'^(?:{_SIGN}{{1,{LONGEST_KEY}}}|"{_QUOTED}{{1,{LONGEST_KEY}}}"(?:;[ -~]*)?)$'

_PATHS: dict[str, tuple[Schema, str, str | int]] = {
    "key": (
        {"type": "string", "minLength": 1},
        "The key of a run, percent-encoded as one segment; without # it is the newest revision.",
        "export:2026-10-24[Europe/Berlin]",
    ),
    "name": (JOB, "The name of a job, or one that it had before.", "export"),
    "id": ({"type": "integer", "minimum": 1, "maximum": 10**18 - 1}, "The number of a backfill.", 1),
}

_LOOK = (400, 401, 403, 421, 500, 503)
_NAMED = (404,)
_CHANGE = (400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 500, 503)
_SAYS = {
    400: "What was asked cannot be understood; `field` names where.",
    401: "Nobody was shown to be somebody who may look.",
    403: "Not from here, or not on a server that only shows.",
    404: "What was named is not there.",
    405: "This path is not for that method.",
    408: "The body was not there in time.",
    409: "Not as things stand; or a request with this key is being worked.",
    413: "The body is too long.",
    415: "The body is not sent as JSON.",
    421: "The server does not answer to this name.",
    422: "This key came with another request before.",
    500: "A bug of duly; the server's log says where.",
    503: "The ledger cannot be read or written now.",
}


def description(server: str = PREFIX, *, asks_who: bool = True) -> dict[str, Any]:
    """The API, at a URL. `asks_who`: somebody has to say who they are, by one of the ways there are."""
    paths: dict[str, Any] = {}
    for read in READS:
        paths.setdefault(_path(read.path), {})["get"] = _read(read)
    for action in ACTIONS:
        paths.setdefault(_path(action.path), {})["post"] = _action(action)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "duly",
            "version": "1",
            "license": {"name": "MIT", "identifier": "MIT"},
            "description": "Every scheduled period, done once, and on the record. What the dashboard shows and does.",
        },
        "servers": [{"url": server}],
        "security": [{"token": []}, {"person": []}] if asks_who else [],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {**SCHEMAS, "problem": PROBLEM},
            "responses": {str(status): _problem(status) for status in _SAYS},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "--token-file"},
                "person": {"type": "http", "scheme": "basic", "description": "--basic-file"},
            },
        },
    }


PROBLEM: Schema = {
    "description": "RFC 9457, with what is ours.",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string", "const": "about:blank"},
        "title": {"type": "string", "enum": list(REASONS.values())},
        "status": {"type": "integer", "enum": list(REASONS)},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "What it is, for programs.", "pattern": "^[a-z]+(?:-[a-z]+)*$"},
        "field": {"type": "string", "description": "The field that is wrong, where one is."},
        "next_step": {"type": "string", "description": "A line for a shell."},
    },
}


def _problem(status: int) -> dict[str, Any]:
    made: dict[str, Any] = {"description": _SAYS[status], "content": {KIND: {"schema": of("problem")}}}
    if status in (409, 503):
        made["headers"] = {"Retry-After": {"description": "In seconds.", "schema": {"type": "integer", "minimum": 1}}}
    if status == 401:
        made["headers"] = {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}}
    if status == 405:
        made["headers"] = {"Allow": {"required": True, "schema": {"type": "string"}}}
    return made


def _problems(*statuses: int) -> dict[str, Any]:
    return {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}


def _path(path: str) -> str:
    return re.sub(r":\w+}", "}", path)


def _of_path(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)", path)
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": says,
            "schema": schema,
            "example": example,
        }
        for name, (schema, says, example) in ((name, _PATHS[name]) for name in names)
    ]


def _in_query(name: str, schema: Schema, says: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": says, "schema": schema}


def _read(read: Read) -> dict[str, Any]:
    parameters = _of_path(read.path) + [_in_query(each.name, each.schema, each.says) for each in read.parameters]
    answer: dict[str, Any] = {
        "description": read.does,
        "content": {JSON: {"schema": _batch(read.answers) if read.is_list else of(read.answers)}},
    }
    if read.is_list:
        answer["headers"] = {"Link": {"description": "The next batch: rel=next.", "schema": {"type": "string"}}}
    names_one = read.parameters and any(each.name == "job" for each in read.parameters)
    statuses = (*_LOOK, *(_NAMED if parameters and ("{" in read.path or names_one) else ()))
    return {
        "operationId": read.name,
        "tags": ["reads"],
        "summary": read.does,
        "parameters": parameters,
        "responses": {"200": answer, **_problems(*statuses)},
    }


def _batch(answers: str) -> Schema:
    there = {"type": ["string", "null"], "description": "The URL of the next batch; null: this is the last one."}
    return {"allOf": [of(answers), {"type": "object", "required": ["next"], "properties": {"next": there}}]}


def _action(action: Action) -> dict[str, Any]:
    key = {
        "name": KEY,
        "in": "header",
        "required": True,
        "description": "The change is made once for each. Send the same again when no answer came.",
        "schema": {"type": "string", "pattern": KEY_PATTERN},
    }
    body = {
        "type": "object",
        "required": [field.name for field in action.fields if is_required(field)],
        "properties": {field.name: schema_of(field) for field in action.fields},
        "additionalProperties": False,
    }
    if not body["required"]:
        del body["required"]
    return {
        "operationId": action.name,
        "tags": ["actions"],
        "summary": action.does,
        "description": action.why,
        "parameters": [
            *_of_path(action.path),
            key,
            _in_query("dry_run", FLAG, "Say what would change, and change nothing. The key is not used up."),
        ],
        "requestBody": {"required": True, "content": {JSON: {"schema": body}}},
        "responses": {
            "200": {
                "description": "What was done, now or when the key came first.",
                "headers": {
                    "Location": {"description": "What it leads to.", "schema": {"type": "string"}},
                    REPLAYED: {"description": "It was done before.", "schema": {"type": "string", "const": "true"}},
                },
                "content": {JSON: {"schema": of(action.answers) if action.answers else _SOME_DOCUMENT}},
            },
            **_problems(*_CHANGE),
        },
    }


_SOME_DOCUMENT: Schema = {
    "type": "object",
    "required": ["schema"],
    "properties": {"schema": {"type": "string", "pattern": r"^duly\.[a-z_]+\.v1$"}},
}


def main() -> None:
    """Print it, as docs/openapi.json has it."""
    import json
    import sys

    sys.stdout.write(json.dumps(description(), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
