"""The command, and how it reads a cluster through kubectl."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from diagnosis import kubectl
from diagnosis.__main__ import main
from diagnosis.cluster import NODE, VOLCANO_JOB
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.support.kubectl_proxy import script


def test_reads_a_kind_by_its_full_name(fake: Path) -> None:
    script(fake, """printf '{"items": [{"metadata": {"name": "%s"}}]}' "$*" """)
    (found,) = kubectl.read(VOLCANO_JOB, "ai")
    assert found["metadata"]["name"] == "get jobs.v1alpha1.batch.volcano.sh --namespace ai --output json"
    (found,) = kubectl.read(NODE, "")
    assert found["metadata"]["name"] == "get nodes --all-namespaces --output json --show-managed-fields"


def test_an_unknown_kind_has_no_objects(fake: Path) -> None:
    script(fake, """echo "error: the server doesn't have a resource type \\"jobs\\"" >&2; exit 1""")
    assert kubectl.read(VOLCANO_JOB, "ai") == []


def test_reads_the_last_log_line_of_all_pods_together(fake: Path) -> None:
    script(fake, """echo "[pod/a/main] VERDICT: PASS"; echo "error: container is waiting to start"; echo "$*" >&2""")
    assert kubectl.last_lines("ai", "a=b") == (["VERDICT: PASS"], ["error: container is waiting to start"])
    script(fake, """printf '[pod/a/main] %s\\n' "$*" """)
    (asked,), _ = kubectl.last_lines("ai", "a=b")
    assert asked == "logs --namespace ai --selector a=b --tail 1 --prefix --ignore-errors"


@case_table(__file__, "ended")
def test_an_ended_job_shows_its_verdict(
    fake: Path, capsys: pytest.CaptureFixture[str], kind: str, status: Object, selector: str
) -> None:
    olmo = json.dumps({"metadata": {"name": "olmo", "uid": "1", "namespace": "ai"}, "spec": {}, "status": status})
    logs = f"""[ "$5" = {selector} ] && echo '[pod/a/main] VERDICT: FAIL'"""
    items = f"""case "$2" in {kind}) echo '{{"items": [{olmo}]}}';; *) echo '{{"items": []}}';; esac"""
    script(fake, f"if [ $1 = logs ]; then {logs}; else {items}; fi")
    assert main(["-n", "ai", "olmo"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "  VERDICT: FAIL"


def test_a_user_without_rights_is_pointed_to_workloads(fake: Path) -> None:
    script(fake, "echo 'Error from server (Forbidden): nodes is forbidden: User alice cannot list it' >&2; exit 1")
    with pytest.raises(kubectl.Forbidden, match="nodes is forbidden(.|\n)*As a member of a team, name a workload"):
        kubectl.read(NODE, "")


def test_reports_a_missing_kubectl(
    fake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(fake.parent))
    assert main(["-n", "ai", "train"]) == 1
    assert capsys.readouterr().err == "error: kubectl cannot be started: No such file or directory\n"


def test_rejects_output_that_is_not_json(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(fake, "echo Welcome")
    assert main(["-n", "ai", "train"]) == 1
    assert "printed no JSON: is kubectl a script here?" in capsys.readouterr().err


def test_an_unknown_workload_is_an_error_that_lists_the_known_ones(
    fake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    olmo = '{"metadata": {"name": "olmo", "uid": "1", "namespace": "ai"}, "spec": {"suspend": true}, "status": {}}'
    script(fake, f"""case "$2" in jobs.v1.batch) echo '{{"items": [{olmo}]}}';; *) echo '{{"items": []}}';; esac""")
    assert main(["-n", "ai", "olmo"]) == 0
    assert main(["-n", "ai", "oldmo", "olmo"]) == 1
    printed = capsys.readouterr()
    assert printed.out.count("olmo: Pending") == 2
    assert printed.err == "error: namespace ai has no workload oldmo; it has olmo\n"


def test_workloads_with_the_same_cause_show_it_once(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [{"metadata": {"name": name, "uid": name, "namespace": "ai"}, "spec": {}, "status": {}} for name in "abc"]
    pods = [
        {
            "metadata": {"name": f"{name}-0", "namespace": "ai", "ownerReferences": [{"uid": name}]},
            "spec": {"schedulerName": "volcano"},
        }
        for name in "abc"
    ]
    cases = (
        f"{kind}) echo '{json.dumps({'items': items})}';;" for kind, items in (("jobs.v1.batch", jobs), ("pods", pods))
    )
    script(fake, f"""case "$2" in {" ".join(cases)} *) echo '{{"items": []}}';; esac""")
    assert main(["-n", "ai", "a", "b", "c"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "does not run" in line] == ["  waits: Volcano's scheduler does not run"]
    assert lines.count("  waits: for the same as a") == 2


def test_without_a_workload_it_reports_on_the_platform(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(fake, """echo '{"items": []}'""")
    assert main([]) == 0
    assert capsys.readouterr().out == "platform: Ready\n"


@case_table(__file__, "unanswered")
def test_explains_an_error_of_kubectl_once(
    fake: Path, capsys: pytest.CaptureFixture[str], error: str, hint: str
) -> None:
    log = 'E0601 10:00:00.000000    4242 memcache.go:265] "Unhandled Error" err="could not get the API group list"'
    script(fake, f"for i in 1 2 3; do echo '{log}' >&2; done; echo '{error}' >&2; echo '{error}' >&2; exit 1")
    assert main([]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == error
    assert hint in "\n".join(lines[2:])
    assert len(lines) <= 6


def test_shows_kubectls_log_line_if_it_is_the_only_output(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(fake, "echo 'E0601 10:00:00.000000 4242 x.go:1] dial tcp 20.1.2.3:443: i/o timeout' >&2; exit 1")
    assert main([]) == 1
    assert "i/o timeout" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_explains_an_azure_error_in_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str], encoding: str) -> None:
    log = tmp_path / "destroy.log"
    log.write_text('error: Status=409 Code="ScopeLocked" Message="..."', encoding=encoding)
    assert main(["--azure-error", str(log)]) == 0
    assert "management lock" in capsys.readouterr().out


def test_a_log_without_a_known_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("all is well"))
    assert main(["--azure-error", "-"]) == 1
    assert "docs/azure-errors.md" in capsys.readouterr().out


def test_reports_a_missing_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--azure-error", str(tmp_path / "none")]) == 1
    assert "cannot be read: No such file" in capsys.readouterr().err
