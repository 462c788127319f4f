from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from k8s.objects import Object
from simulator.host import ports
from simulator.host.certificates import cluster_certificates
from simulator.host.network import ClusterNetwork
from simulator.kubelet import folders, logs
from simulator.kubelet.access import PodAccess
from simulator.kubelet.logs import LogFile, Wanted, read, select
from simulator.kubelet.server import KubeletServer
from tests.support.case_files import case_table
from tests.unit.simulator.kubelet.pods import make


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_FOLLOW_POLL_S", 0)


# -- one log for each start --------------------------------------------------------------------------------------------

RUNNING: Object = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
ENDED: Object = {"terminated": {"exitCode": 1}}
CRASHED: Object = {"waiting": {"reason": "CrashLoopBackOff"}}


class Pod:
    def __init__(self, cluster: Path) -> None:
        self.pod = make()
        self.pod["status"]["phase"] = "Running"
        self._folder = folders.logs_of(cluster, self.pod) / "main"
        self._access = PodAccess(
            cluster, cast(ClusterNetwork, None), lambda namespace, name: self.pod, lambda container: None
        )

    def start(self, text: str) -> LogFile:
        log = LogFile(self._folder)
        log.line(text)
        return log

    def state(self, state: Object, last: Object | None = None) -> None:
        status = {"name": "main", "state": state, "lastState": last or {}}
        self.pod["status"]["containerStatuses"] = [status]

    def shown(self, *, previous: bool = False) -> str | None:
        path = self._access.log("ai", "train-0", "main", previous=previous)
        if path is None:
            return None
        (lines,) = read(path, lambda: False)
        return select(lines, Wanted()).decode()

    def is_followed(self) -> bool:
        path = self._access.log("ai", "train-0", "main")
        assert path is not None
        return self._access.can_grow("ai", "train-0", "main", path)


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


def test_a_container_that_never_started_has_no_log(pod: Pod) -> None:
    assert pod.shown() is None
    assert pod.shown(previous=True) is None


def test_between_two_starts_both_logs_are_the_last_one(pod: Pod) -> None:
    pod.start("first")
    pod.state(CRASHED, ENDED)
    assert (pod.shown(), pod.shown(previous=True)) == ("first\n", "first\n")


def test_keeps_the_logs_of_the_last_two_starts(pod: Pod, tmp_path: Path) -> None:
    for number in range(12):
        pod.start(str(number))
    assert sorted(path.name for path in tmp_path.rglob("*.log")) == ["10.log", "11.log"]
    assert (pod.shown(), pod.shown(previous=True)) == ("11\n", "10\n")


def test_follows_a_log_while_its_start_runs(pod: Pod) -> None:
    pod.start("first")
    pod.state(RUNNING)
    assert pod.is_followed()
    for state, last in ((ENDED, {}), (CRASHED, ENDED)):
        pod.state(state, last)
        assert not pod.is_followed()
    pod.state(RUNNING)
    pod.pod["status"]["phase"] = "Failed"
    assert not pod.is_followed()


def test_following_ends_with_the_last_line(pod: Pod, tmp_path: Path) -> None:
    log = pod.start("first")
    goes_on = iter([True, True, False])
    received = []
    for lines in read(next(tmp_path.rglob("0.log")), lambda: next(goes_on)):
        received.append(select(lines, Wanted()).decode())
        log.line(f"after {len(received)}")
    assert received == ["first\n", "after 1\n", "after 2\n"]


def test_an_incomplete_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text("2026-01-01T00:00:00.0Z stdout F ha")
    received = []
    goes_on = iter([True, False])
    for lines in read(path, lambda: next(goes_on)):
        received.append(lines)
        path.write_text("2026-01-01T00:00:00.0Z stdout F half\n")
    assert received == [[], ["2026-01-01T00:00:00.0Z stdout F half"]]


# -- parts of a log ---------------------------------------------------------------------------------------------------

LINES = [f"2026-01-01T00:00:0{second}.000000000Z stdout F line {second}" for second in range(4)]


@case_table(__file__, "parts")
def test_selects_the_requested_part(query: dict[str, str], shown: str) -> None:
    assert select(LINES, Wanted.by(query)).decode() == shown


def test_counts_since_seconds_from_now(tmp_path: Path) -> None:
    LogFile(tmp_path).line("just now")
    (lines,) = read(tmp_path / "0.log", lambda: False)
    assert select(lines, Wanted.by({"sinceSeconds": "3600"})) == b"just now\n"


def test_limit_and_tail_apply_to_the_first_part_of_a_followed_log() -> None:
    wanted = Wanted.by({"limitBytes": "16", "tailLines": "1"})
    sent = select(LINES[:2], wanted)
    assert sent + select(LINES[2:], wanted.after(sent)) == b"line 1\nline 2\nli"


# -- the endpoint for the API server----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def api_server(cluster: Path) -> Iterator[httpx.Client]:
    """The kubelet's container was started twice."""
    pod, port = make(), ports.free(set())
    for text in ("first", "second\nthird"):
        LogFile(folders.logs_of(cluster, pod) / "main").line(text)
    authority = cluster_certificates(cluster / "pki")
    access = PodAccess(cluster, cast(ClusterNetwork, None), lambda namespace, name: pod, lambda container: None)
    server = KubeletServer(authority, port, access)
    context = ssl.create_default_context(cafile=authority.path("ca", "crt"))
    context.load_cert_chain(authority.path("kubelet-client", "crt"), authority.path("kubelet-client", "key"))
    with httpx.Client(base_url=f"https://127.0.0.1:{port}/containerLogs/ai/train-0/", verify=context) as client:
        yield client
    server.stop()


@pytest.mark.parametrize(
    ("query", "shown"),
    [("", "second\nthird\n"), ("tailLines=1", "third\n"), ("previous=true", "first\n")],
)
def test_serves_a_log_and_its_parts(api_server: httpx.Client, query: str, shown: str) -> None:
    answer = api_server.get(f"main?{query}")
    assert (answer.status_code, answer.text) == (200, shown)


def test_a_container_that_never_restarted_has_no_previous_log(api_server: httpx.Client) -> None:
    answer = api_server.get("sidecar?previous=true")
    assert (answer.status_code, answer.text) == (
        400,
        'previous terminated container "sidecar" in pod "train-0" not found\n',
    )
