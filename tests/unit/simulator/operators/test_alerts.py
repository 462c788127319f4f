"""The real promtool checks alert rules on the series in alerts.yaml."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.storage import sas
from operators.monitoring import files
from operators.node_problem_detector import alerts as node_alerts
from operators.node_problem_detector.conditions import condition_type, conditions
from simulator.host import paths
from simulator.operators.monitoring.programs import PROMTOOL

pytestmark = [pytest.mark.simulator, pytest.mark.long]  # builds promtool, which takes minutes the first time
CASES = Path(__file__).with_name("alerts.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def promtool() -> Path:
    subprocess.run([sys.executable, "-m", "simulator.tools", "--only", PROMTOOL], check=True)
    return paths.tool(PROMTOOL)


def assert_true(promtool: Path, folder: Path, cases: Any, rules: Any = None) -> None:
    """`rules` is their rule file's content, if not in the cases."""
    if rules is not None:
        (folder / "rules.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
        cases = {"rule_files": [str(folder / "rules.yaml")], "evaluation_interval": "1m", "tests": cases}
    (folder / "cases.yaml").write_text(yaml.safe_dump(cases), encoding="utf-8")
    command = [str(promtool), "test", "rules", str(folder / "cases.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_rule_raises_its_alert_only_for_its_cause(promtool: Path, tmp_path: Path) -> None:
    assert_true(promtool, tmp_path, yaml.safe_load(CASES.replace("{alerts}", str(files.ALERTS))))


def test_the_end_of_a_sas_raises_an_alert_before_it(promtool: Path, tmp_path: Path) -> None:
    """promtool's times begin in 1970."""
    made = sas.rule("data", "1970-01-01T00:00:00Z", "1970-01-01T03:00:00Z", fix="pulumi up")
    name = sas.ALERT
    alert = {"exp_labels": {"severity": "critical", "container": "data"}, "exp_annotations": made["annotations"]}
    at = {"1h": [], "2h1m": [alert], "5h": [alert]}
    cases = [{"alertname": name, "eval_time": time, "exp_alerts": alerts} for time, alerts in at.items()]
    test = {"interval": "1m", "input_series": [], "alert_rule_test": cases}
    assert_true(promtool, tmp_path, [test], sas.spec([made]))


def series(condition: str, **values: str) -> list[dict[str, str]]:
    """States without values are 0."""
    labels = f'node="gpu-0", condition="{condition}"'
    return [
        {"series": f'{node_alerts.STATES}{{{labels}, status="{state}"}}', "values": values.get(state, "0x60")}
        for state in ("true", "false", "unknown")
    ]


def minutes(time: str) -> int:
    return int(time.removesuffix("m"))


def node_cases() -> Iterator[dict[str, Any]]:
    """Yields a case for each condition: a problem from minute 10 to 49, and its alert after the rule's time."""
    rules = {rule["alert"]: rule for rule in node_alerts.rules()["groups"][0]["rules"]}
    for name in conditions():
        rule, kind = rules[node_alerts.alert_name(name)], condition_type(name)
        lasts = minutes(rule["for"])
        labels = {"severity": rule["labels"]["severity"], "node": "gpu-0", "condition": kind, "status": "true"}
        alert = {
            "exp_labels": labels,
            "exp_annotations": {
                key: text.replace("{{ $labels.node }}", "gpu-0").replace("{{ $labels.condition }}", kind)
                for key, text in rule["annotations"].items()
            },
        }
        at = {9: [], 10 + lasts: [alert], 51: []} | ({9 + lasts: []} if lasts else {})
        yield {
            "interval": "1m",
            "input_series": series(kind, true="0x9 1x39 0x10", false="1x9 0x39 1x10"),
            "alert_rule_test": [
                {"alertname": rule["alert"], "eval_time": f"{minute}m", "exp_alerts": alerts}
                for minute, alerts in sorted(at.items())
            ],
        }


def test_each_node_condition_raises_its_alert_while_it_is_true(promtool: Path, tmp_path: Path) -> None:
    assert_true(promtool, tmp_path, list(node_cases()), node_alerts.rules())


def test_an_unknown_condition_raises_only_the_alert_for_unknown_ones(promtool: Path, tmp_path: Path) -> None:
    kind = condition_type("GPUMissing")
    (rule,) = (each for each in node_alerts.rules()["groups"][0]["rules"] if each["alert"] == node_alerts.UNKNOWN)
    alert = {
        "exp_labels": {"severity": "warning", "node": "gpu-0", "condition": kind, "status": "unknown"},
        "exp_annotations": rule["annotations"] | {"summary": f"Node gpu-0: the state of {kind} is unknown"},
    }
    aks_condition = f'{node_alerts.STATES}{{node="gpu-0", condition="KubeletProblem", status="unknown"}}'
    cases = [
        {"alertname": node_alerts.UNKNOWN, "eval_time": "29m", "exp_alerts": []},
        {"alertname": node_alerts.UNKNOWN, "eval_time": "31m", "exp_alerts": [alert]},
        {"alertname": node_alerts.alert_name("GPUMissing"), "eval_time": "31m", "exp_alerts": []},
    ]
    found = [*series(kind, unknown="1x60"), {"series": aks_condition, "values": "1x60"}]
    assert_true(
        promtool, tmp_path, [{"interval": "1m", "input_series": found, "alert_rule_test": cases}], node_alerts.rules()
    )


def test_raises_an_alert_for_a_node_without_the_detector(promtool: Path, tmp_path: Path) -> None:
    name = "kube_daemonset_status_number_unavailable"
    found = [
        {"series": f'{name}{{daemonset="node-problem-detector-nd96isr-h100-v5"}}', "values": "1x60"},
        {"series": f'{name}{{daemonset="node-labeler"}}', "values": "1x60"},
    ]
    what = "node-problem-detector-nd96isr-h100-v5 does not run on 1 nodes, so their conditions are outdated"
    labels = {"severity": "warning", "daemonset": "node-problem-detector-nd96isr-h100-v5"}
    alert = {"exp_labels": labels, "exp_annotations": {"summary": what}}
    cases = [
        {"alertname": node_alerts.AWAY, "eval_time": "29m", "exp_alerts": []},
        {"alertname": node_alerts.AWAY, "eval_time": "31m", "exp_alerts": [alert]},
    ]
    assert_true(
        promtool, tmp_path, [{"interval": "1m", "input_series": found, "alert_rule_test": cases}], node_alerts.rules()
    )


def test_every_rule_has_a_case() -> None:
    rules = {rule["alert"] for group in files.rules()["groups"] for rule in group["rules"]}
    cases = {case["alertname"] for test in yaml.safe_load(CASES)["tests"] for case in test["alert_rule_test"]}
    assert cases == rules
