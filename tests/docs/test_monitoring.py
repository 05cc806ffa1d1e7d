"""The page of monitoring: its tables are the code's, its programs run; rules and dashboard name only what there is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from duly.evidence.complete_through import Completeness, LastCompleted
from duly.evidence.metrics import (
    METRICS,
    OUTCOMES,
    STATES,
    LineSeen,
    MessagesSeen,
    Scrape,
    Snapshot,
    open_metrics_text,
    text,
)
from duly.ledger.message_states import UNSETTLED
from duly.work.told import Account
from tests.docs.test_outbox import here
from tests.docs.test_readme import ROOT, blocks

PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
RULES = ROOT / "docs" / "monitoring" / "duly.rules.yml"
DASHBOARD = ROOT / "docs" / "monitoring" / "duly.dashboard.json"

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="PROMTOOL IS MISSING, so the rules are not read by Prometheus itself here (Debian: prometheus)",
)


def test_the_table_of_metrics_is_the_codes() -> None:
    rows = [f"| `{m.name}` | {', '.join(m.labels) or '–'} | {m.says} |" for m in METRICS]

    assert [line for line in PAGE.splitlines() if line.startswith("| `duly_")] == rows


def test_the_table_of_fields_is_that_of_the_log() -> None:
    log = PAGE.partition("\n## Logs\n")[2].partition("\n## Traces\n")[0]

    assert re.findall(r"^\| `(\w+)` \|", log, re.MULTILINE) == list(Account.__match_args__)


def test_every_state_and_outcome_is_told_of() -> None:
    for word in (*STATES, *OUTCOMES):
        assert word in PAGE


def expressions() -> dict[str, str]:
    """Every expression of the rules and the dashboard, by where it stands."""
    rules = re.sub(r">-\n\s+", "", RULES.read_text(encoding="utf-8"))
    rules = re.sub(r"\n\s+/ ", " / ", rules)
    found = {f"rule {expr}": expr for expr in re.findall(r"expr: (.*)", rules)}
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        found |= {f"{panel['title']} {target['refId']}": target["expr"] for target in panel["targets"]}
    return found


def test_the_rules_and_the_dashboard_name_only_what_there_is() -> None:
    by_name = {metric.name: metric for metric in METRICS}
    known = {"state": {*STATES, *UNSETTLED}, "outcome": set(OUTCOMES)}
    named: set[str] = set()

    for place, expr in expressions().items():
        for name, inside in re.findall(r"(duly_\w+)(?:\{([^}]*)\})?", expr):
            assert name in by_name, place
            named.add(name)
            for label, value in re.findall(r'(\w+)=~?"([^"]*)"', inside):
                assert label in by_name[name].labels, place
                assert "$" in value or set(value.split("|")) <= known[label], place

    assert len(named) > 14  # each is on the dashboard, or in a rule
    assert {metric.name for metric in METRICS} - named == set()


def test_each_alert_says_what_to_type_next() -> None:
    rules = RULES.read_text(encoding="utf-8")

    assert rules.count("- alert: ") == rules.count("Type: duly ") == len(re.findall("summary: ", rules))


def scrape() -> Scrape:
    line = LineSeen(
        job="close",
        scope='a"c',
        windows={"missing": 1},
        late=1,
        needs=1,
        attempts={"completed": 3},
        completeness=Completeness(1_793_059_200_000_000, LastCompleted(1_793_059_200_000_000, 90_500_000)),
        paused=False,
        backfill_left=0,
    )
    messages = [MessagesSeen("crm", "pending", 1, 1_793_059_200_000_000)]
    return Scrape(Snapshot(1_793_062_800_000_000, 1, [line], messages), 1_500, "0.1")


def promtool(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *words], input=given, capture_output=True, text=True, check=False, timeout=60)


@needs_promtool
def test_prometheus_reads_the_rules_and_the_metrics_without_a_complaint() -> None:
    rules = promtool("check", "rules", str(RULES))
    metrics = promtool("check", "metrics", given=text(scrape()))

    assert rules.returncode == 0, rules.stdout + rules.stderr
    assert (metrics.returncode, metrics.stdout + metrics.stderr) == (0, "")


@needs_promtool
def test_the_alerts_fire_for_what_is_missing_and_not_for_what_is_paused(tmp_path: Path) -> None:
    def series(name: str, value: str, **labels: str) -> dict[str, str]:
        inside = ",".join(f'{label}="{said}"' for label, said in labels.items())
        return {"series": f"{name}{{{inside}}}", "values": value}

    given = [
        *(series("duly_windows", "1x60", job_name=job, scope="", state="missing") for job in ("close", "held")),
        series("duly_paused", "0x60", job_name="close", scope=""),
        series("duly_paused", "1x60", job_name="held", scope=""),
        series("duly_ledger_up", "1x60"),
        series("duly_messages", "0x60", destination="crm", state="dead"),
        series("duly_messages", "2x60", destination="erp", state="dead"),
    ]

    def fires(alert: str, at: str, *labels: dict[str, str]) -> dict[str, Any]:
        return {"eval_time": at, "alertname": alert, "exp_alerts": [{"exp_labels": one} for one in labels]}

    missing = {"severity": "critical", "job_name": "close", "scope": "", "state": "missing"}
    stuck = {"severity": "critical", "destination": "erp"}
    tests = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": given,
                "alert_rule_test": [
                    fires("DulyWindowsMissing", "2m"),
                    fires("DulyMetricsAbsent", "30m"),
                    fires("DulyLedgerDown", "30m"),
                ],
                "promql_expr_test": [
                    {
                        "expr": 'ALERTS{alertname=~"DulyWindowsMissing|DulyMessagesStuck",alertstate="firing"}',
                        "eval_time": "10m",
                        "exp_samples": [
                            {"labels": _alert("DulyMessagesStuck", **stuck), "value": 1},
                            {"labels": _alert("DulyWindowsMissing", **missing), "value": 1},
                        ],
                    }
                ],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(json.dumps(tests))  # which is YAML

    ended = promtool("test", "rules", str(path))

    assert ended.returncode == 0, ended.stdout + ended.stderr


def _alert(name: str, **labels: str) -> str:
    said = {"alertname": name, "alertstate": "firing", **labels}
    return "ALERTS{" + ",".join(f'{label}="{value}"' for label, value in said.items()) + "}"


def test_open_metrics_are_read_as_well() -> None:
    families = list(text_string_to_metric_families(open_metrics_text(scrape())))  # type: ignore[no-untyped-call]

    assert {family.name for family in families} == {metric.name for metric in METRICS}


def test_the_programs_of_the_page_say_what_it_says(tmp_path: Path) -> None:
    log, trace = blocks(PAGE, "python")

    def ran(program: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-c", program]
        return subprocess.run(command, cwd=tmp_path, env=here(tmp_path), capture_output=True, text=True, check=True)

    said = ran(log).stderr.splitlines()
    assert re.fullmatch(r"WARNING credited, in credit:\S+ attempt \S{36}", said[0])
    assert re.fullmatch(r"INFO credit:\S+ attempt 1 completed, (0s|\d+ms), \S{36}", said[1])
    spans = ran(trace).stdout
    assert spans.index('"name": "read the sales"') < spans.index('"name": "duly report"')
