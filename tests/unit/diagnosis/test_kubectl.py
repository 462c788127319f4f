from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from diagnosis import kubectl
from diagnosis.cluster import NODE, VOLCANO_JOB
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.support.kubectl_proxy import script
from tests.unit.diagnosis.conftest import Run, Serve


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
def test_an_ended_job_shows_its_verdict(fake: Path, run: Run, kind: str, status: Object, selector: str) -> None:
    olmo = json.dumps({"metadata": {"name": "olmo", "uid": "1", "namespace": "ai"}, "spec": {}, "status": status})
    logs = f"""[ "$5" = {selector} ] && echo '[pod/a/main] VERDICT: FAIL'"""
    items = f"""case "$2" in {kind}) echo '{{"items": [{olmo}]}}';; *) echo '{{"items": []}}';; esac"""
    script(fake, f"if [ $1 = logs ]; then {logs}; else {items}; fi")
    code, output, _ = run("-n", "ai", "olmo")
    assert (code, output.splitlines()[1]) == (0, "  VERDICT: FAIL")


def test_a_user_without_rights_is_pointed_to_workloads(fake: Path) -> None:
    script(fake, "echo 'Error from server (Forbidden): nodes is forbidden: User alice cannot list it' >&2; exit 1")
    with pytest.raises(kubectl.Forbidden, match="nodes is forbidden(.|\n)*As a member of a team, name a workload"):
        kubectl.read(NODE, "")


def test_reports_a_missing_kubectl(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("-n", "ai", "train") == (1, "", "error: kubectl cannot be started: No such file or directory\n")


def test_rejects_output_that_is_not_json(fake: Path, run: Run) -> None:
    script(fake, "echo Welcome")
    code, _, errors = run("-n", "ai", "train")
    assert (code, "did not print JSON. Check the kubectl on PATH: type kubectl" in errors) == (1, True)


def job(name: str, **spec: object) -> Object:
    return {"metadata": {"name": name, "uid": name, "namespace": "ai"}, "spec": spec, "status": {}}


def test_an_unknown_workload_is_an_error_that_lists_the_known_ones(serve: Serve, run: Run) -> None:
    serve(jobs_v1_batch=[job("olmo", suspend=True)])
    code, output, errors = run("-n", "ai", "oldmo", "olmo")
    assert (code, errors) == (1, "error: namespace ai has no workload oldmo; its workloads: olmo\n")
    assert output.startswith("olmo: Pending\n")


def test_workloads_with_the_same_cause_show_it_once(serve: Serve, run: Run) -> None:
    metadata = ({"name": f"{each}-0", "namespace": "ai", "ownerReferences": [{"uid": each}]} for each in "abc")
    pods = [{"metadata": each, "spec": {"schedulerName": "volcano"}} for each in metadata]
    serve(jobs_v1_batch=[job(name) for name in "abc"], pods=pods)
    code, output, _ = run("-n", "ai", "a", "b", "c")
    lines = output.splitlines()
    assert (code, lines.count("  waits: Volcano's scheduler does not run")) == (0, 1)
    assert lines.count("  waits: for the same reason as a") == 2


def test_without_a_workload_it_reports_on_the_platform(serve: Serve, run: Run) -> None:
    serve()
    assert run() == (0, "platform: Ready\n", "")


@case_table(__file__, "unanswered")
def test_explains_an_error_of_kubectl_once(fake: Path, run: Run, error: str, hint: str) -> None:
    log = 'E0601 10:00:00.000000    4242 memcache.go:265] "Unhandled Error" err="could not get the API group list"'
    script(fake, f"for i in 1 2 3; do echo '{log}' >&2; done; echo '{error}' >&2; echo '{error}' >&2; exit 1")
    code, _, errors = run()
    _, first, *hints = errors.splitlines()
    assert (code, first) == (1, error)
    assert hint in "\n".join(hints)
    assert len(hints) <= 4


def test_shows_kubectls_log_line_if_it_is_the_only_output(fake: Path, run: Run) -> None:
    script(fake, "echo 'E0601 10:00:00.000000 4242 x.go:1] dial tcp 20.1.2.3:443: i/o timeout' >&2; exit 1")
    assert "i/o timeout" in run()[2]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_explains_an_azure_error_in_a_log(tmp_path: Path, run: Run, encoding: str) -> None:
    log = tmp_path / "destroy.log"
    log.write_text('error: Status=409 Code="ScopeLocked" Message="..."', encoding=encoding)
    code, output, _ = run("--azure-error", str(log))
    assert (code, "management lock" in output) == (0, True)


def test_a_log_without_a_known_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("all is well"))
    code, output, _ = run("--azure-error", "-")
    assert (code, "docs/azure-errors.md" in output) == (1, True)


def test_reports_a_missing_log(tmp_path: Path, run: Run) -> None:
    code, _, errors = run("--azure-error", str(tmp_path / "none"))
    assert (code, "cannot be read: No such file" in errors) == (1, True)
