"""The command, and how it reads a cluster: through kubectl, whose refusals it tells in their words."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from diagnosis import kubectl
from diagnosis.__main__ import main
from diagnosis.cluster import NODE, POD, VOLCANO_JOB
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.support.kubectl_proxy import script


def test_kubectl_is_asked_for_a_kind_by_its_whole_name(fake: Path) -> None:
    script(fake, """printf '{"items": [{"metadata": {"name": "%s"}}]}' "$*" """)
    (found,) = kubectl.read(VOLCANO_JOB, "ai")
    assert found["metadata"]["name"] == "get jobs.v1alpha1.batch.volcano.sh --namespace ai --output json"
    (found,) = kubectl.read(NODE, "")
    assert found["metadata"]["name"] == "get nodes --all-namespaces --output json --show-managed-fields"


def test_a_kind_that_the_cluster_does_not_have_has_no_objects(fake: Path) -> None:
    script(fake, """echo "error: the server doesn't have a resource type \\"jobs\\"" >&2; exit 1""")
    assert kubectl.read(VOLCANO_JOB, "ai") == []


def test_the_last_line_of_each_pod_s_log_is_read_at_once(fake: Path) -> None:
    script(fake, """echo "[pod/a/main] VERDICT: PASS"; echo "error: container is waiting to start"; echo "$*" >&2""")
    assert kubectl.last_lines("ai", "a=b") == (["VERDICT: PASS"], ["error: container is waiting to start"])
    script(fake, """printf '[pod/a/main] %s\\n' "$*" """)
    (asked,), _ = kubectl.last_lines("ai", "a=b")
    assert asked == "logs --namespace ai --selector a=b --tail 1 --prefix --ignore-errors"


@case_table(__file__, "ended")
def test_a_job_that_has_ended_is_told_with_its_verdict(
    fake: Path, capsys: pytest.CaptureFixture[str], kind: str, status: Object, selector: str
) -> None:
    olmo = json.dumps({"metadata": {"name": "olmo", "uid": "1", "namespace": "ai"}, "spec": {}, "status": status})
    logs = f"""[ "$5" = {selector} ] && echo '[pod/a/main] VERDICT: FAIL'"""
    items = f"""case "$2" in {kind}) echo '{{"items": [{olmo}]}}';; *) echo '{{"items": []}}';; esac"""
    script(fake, f"if [ $1 = logs ]; then {logs}; else {items}; fi")
    assert main(["-n", "ai", "olmo"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "  VERDICT: FAIL"


def test_what_kubectl_refuses_is_told_in_its_words(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(fake, "echo 'error: You must be logged in to the server (Unauthorized)' >&2; exit 1")
    with pytest.raises(kubectl.KubectlFailed, match="logged in"):
        kubectl.read(POD, "ai")
    assert main(["-n", "ai", "train"]) == 1
    assert "\nerror: You must be logged in to the server (Unauthorized)\n" in capsys.readouterr().err


def test_who_may_not_look_at_all_of_it_is_told_what_to_ask(fake: Path) -> None:
    script(fake, "echo 'Error from server (Forbidden): nodes is forbidden: User alice cannot list it' >&2; exit 1")
    with pytest.raises(kubectl.Forbidden, match="nodes is forbidden(.|\n)*Members of a team ask of what is theirs"):
        kubectl.read(NODE, "")


def test_outside_of_a_private_cluster_it_says_where_to_go(fake: Path) -> None:
    name = "dev-1234.0c0ffee.privatelink.eastus.azmk8s.io"
    script(fake, f"echo 'dial tcp: lookup {name} on 127.0.0.53:53: no such host' >&2; exit 1")
    with pytest.raises(kubectl.KubectlFailed, match="private, and this machine is outside its network"):
        kubectl.read(POD, "ai")


def test_no_kubectl_at_all(fake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", str(fake.parent))
    assert main(["-n", "ai", "train"]) == 1
    assert capsys.readouterr().err == "error: kubectl cannot be started: No such file or directory\n"


def test_an_answer_that_is_no_json(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(fake, "echo Welcome")
    assert main(["-n", "ai", "train"]) == 1
    assert "printed no JSON: is kubectl a script here?" in capsys.readouterr().err


def test_a_workload_that_is_missing_is_an_error_which_names_those_there_are(
    fake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    olmo = '{"metadata": {"name": "olmo", "uid": "1", "namespace": "ai"}, "spec": {"suspend": true}, "status": {}}'
    script(fake, f"""case "$2" in jobs.v1.batch) echo '{{"items": [{olmo}]}}';; *) echo '{{"items": []}}';; esac""")
    assert main(["-n", "ai", "olmo"]) == 0
    assert main(["-n", "ai", "oldmo", "olmo"]) == 1
    said = capsys.readouterr()
    assert said.out.count("olmo: Pending") == 2
    assert said.err == "error: namespace ai has no workload oldmo; it has olmo\n"


def test_without_a_workload_the_platform_is_looked_at(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(fake, """echo '{"items": []}'""")
    assert main([]) == 0
    assert capsys.readouterr().out == "platform: Ready\n"


@case_table(__file__, "unanswered")
def test_a_cluster_that_does_not_answer_is_explained_once(
    fake: Path, capsys: pytest.CaptureFixture[str], said: str, hint: str
) -> None:
    log = 'E0601 10:00:00.000000    4242 memcache.go:265] "Unhandled Error" err="could not get the API group list"'
    script(fake, f"for i in 1 2 3; do echo '{log}' >&2; done; echo '{said}' >&2; echo '{said}' >&2; exit 1")
    assert main([]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == said
    assert hint in "\n".join(lines[2:])
    assert len(lines) <= 6


def test_words_of_kubectl_s_log_are_shown_if_it_says_nothing_else(
    fake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script(fake, "echo 'E0601 10:00:00.000000 4242 x.go:1] dial tcp 20.1.2.3:443: i/o timeout' >&2; exit 1")
    assert main([]) == 1
    assert "i/o timeout" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_log_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str], encoding: str) -> None:
    log = tmp_path / "destroy.log"
    log.write_text('error: Status=409 Code="ScopeLocked" Message="..."', encoding=encoding)
    assert main(["--azure-error", str(log)]) == 0
    assert "management lock" in capsys.readouterr().out


def test_a_log_without_a_known_error_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("all is well"))
    assert main(["--azure-error", "-"]) == 1
    assert "docs/azure-errors.md" in capsys.readouterr().out


def test_a_log_that_is_not_there_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--azure-error", str(tmp_path / "none")]) == 1
    assert "cannot be read: No such file" in capsys.readouterr().err
