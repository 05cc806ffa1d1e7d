"""The description: it is valid, has every read and every action, is the same each time, and its copy is not old."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import jsonschema
from starlette.applications import Starlette
from starlette.routing import Mount

from duly.evidence.documents.schemas import SCHEMAS
from duly.web import dashboard
from duly.web.actions import ACTIONS
from duly.web.api import PREFIX
from duly.web.api.openapi import description
from duly.web.api.reads import READS
from duly.web.credentials import Credentials
from duly.web.settings import Settings
from tests.books import Book
from tests.docs.test_readme import ROOT
from tests.web.api.conftest import Asker
from tests.web.conftest import served


def operations(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["operationId"]: each for path in told["paths"].values() for each in path.values()}


def test_it_has_every_read_and_every_action_with_the_same_fields() -> None:
    found = operations(description())

    assert found.keys() == {read.name for read in READS} | {action.name for action in ACTIONS}
    for action in ACTIONS:
        body = found[action.name]["requestBody"]["content"]["application/json"]["schema"]
        assert list(body["properties"]) == [field.name for field in action.fields]
        assert set(body.get("required", ())) == {f.name for f in action.fields if f.required and not f.standard}
    for read in READS:
        names = [each["name"] for each in found[read.name]["parameters"] if each["in"] == "query"]
        assert names == [parameter.name for parameter in read.parameters]


def test_each_action_says_by_which_document_it_is_answered() -> None:
    assert {action.answers for action in ACTIONS} <= SCHEMAS.keys()
    assert {read.answers for read in READS} <= SCHEMAS.keys()


def test_each_schema_is_one_and_what_it_names_is_there() -> None:
    told = description()

    for name, schema in told["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert name == schema.get("properties", {}).get("schema", {}).get("const", name)
    text = json.dumps(told)
    for kind in ("schemas", "responses"):
        named = {each.partition('"')[0] for each in text.split(f"#/components/{kind}/")[1:]}
        assert named <= told["components"][kind].keys()


def test_the_copy_in_the_docs_is_not_old() -> None:
    """Made anew by `make share`, as all that is made of the code."""
    made = subprocess.run(
        [sys.executable, "-m", "duly.web.api.openapi"], capture_output=True, text=True, check=True
    ).stdout

    assert (ROOT / "docs" / "openapi.json").read_text(encoding="utf-8") == made


def test_a_server_describes_where_it_stands_and_whether_somebody_has_to_say_who_they_are(quiet: Book) -> None:
    asks = Settings(credentials=Credentials("correct-horse-battery-staple", ()))
    with served(dashboard(quiet.path, asks)) as browser:
        known = browser.ask(f"{PREFIX}/openapi.json", Authorization="Bearer correct-horse-battery-staple").document
        assert browser.ask(f"{PREFIX}/openapi.json").status == 401
    with served(Starlette(routes=[Mount("/ops", dashboard(quiet.path, Settings()))])) as browser:
        mounted = browser.ask(f"/ops{PREFIX}/openapi.json").document
        batch = browser.ask(f"/ops{PREFIX}/runs?limit=1").document
        there = browser.ask(batch["next"])

    assert known == description()
    assert mounted["servers"] == [{"url": "/ops/api/v1"}]
    assert mounted["security"] == []
    assert there.status == 200
    assert there.document["runs"] != batch["runs"]


def test_under_a_root_of_its_own_a_link_leads_back(quiet: Book) -> None:
    with served(dashboard(quiet.path, Settings(root_path="/duly"))) as browser:
        batch = browser.ask(f"{PREFIX}/runs?limit=1").document
        assert batch["next"].startswith("/duly/api/v1/runs?")
        assert browser.ask(batch["next"]).document["runs"]
        assert browser.ask(f"/duly{PREFIX}/nothing").headers["content-type"] == "application/problem+json"


def test_every_problem_of_these_stories_is_in_the_description(api: Asker) -> None:
    problem = description()["components"]["schemas"]["problem"]

    for path in ("/runs?x=1", "/job/exprot", "/nothing"):
        jsonschema.validate(api.ask(path).document, problem)
