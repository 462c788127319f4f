"""Monitoring's alert rules, by the real promtool on series that are written down in alerts.yaml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from components import sas_alert
from operators.monitoring import files
from simulator.host import paths
from simulator.operators.monitoring.programs import PROMTOOL

pytestmark = [pytest.mark.simulator, pytest.mark.long]  # promtool is built for it, which takes minutes the first time
CASES = Path(__file__).with_name("alerts.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def promtool() -> Path:
    subprocess.run([sys.executable, "-m", "simulator.tools", "--only", PROMTOOL], check=True)
    return paths.tool(PROMTOOL)


def judged(promtool: Path, folder: Path, alerts: Path) -> subprocess.CompletedProcess[str]:
    cases = folder / "cases.yaml"
    cases.write_text(CASES.replace("{alerts}", str(alerts)), encoding="utf-8")
    return subprocess.run([promtool, "test", "rules", cases], capture_output=True, text=True, check=False)


def test_each_rule_raises_its_alert_and_only_when_it_should(promtool: Path, tmp_path: Path) -> None:
    done = judged(promtool, tmp_path, files.ALERTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_rule_that_means_something_else_is_noticed(promtool: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(files.ALERTS.read_text(encoding="utf-8").replace("ERRORS == 79", "ERRORS == 13"), encoding="utf-8")
    assert "GPUFailed" in (done := judged(promtool, tmp_path, wrong)).stdout + done.stderr
    assert done.returncode != 0


def test_a_sas_that_ends_is_told_in_time(promtool: Path, tmp_path: Path) -> None:
    """Prometheus's tests begin in 1970."""
    made = sas_alert.rule("data", "1970-01-01T00:00:00Z", "1970-01-01T03:00:00Z", fix="pulumi up")
    rules = tmp_path / "sas.yaml"
    rules.write_text(yaml.safe_dump(sas_alert.spec([made])), encoding="utf-8")
    name = sas_alert.ALERT
    told = {"exp_labels": {"severity": "critical", "container": "data"}, "exp_annotations": made["annotations"]}
    at = {"1h": [], "2h1m": [told], "5h": [told]}
    cases = [{"alertname": name, "eval_time": time, "exp_alerts": alerts} for time, alerts in at.items()]
    test = {"interval": "1m", "input_series": [], "alert_rule_test": cases}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": [str(rules)], "tests": [test]}))
    done = subprocess.run(
        [promtool, "test", "rules", tmp_path / "test.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_has_a_case() -> None:
    rules = {rule["alert"] for group in files.rules()["groups"] for rule in group["rules"]}
    cases = {case["alertname"] for test in yaml.safe_load(CASES)["tests"] for case in test["alert_rule_test"]}
    assert cases == rules
