from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from simulator.sandbox.library import programs, ranks, view
from simulator.sandbox.library.mpi_arguments import MpiError
from simulator.sandbox.library.ranks import Rank


class Stopped(Exception):
    """Ends the second pod's sshd."""


class Nodes:
    """Two pods that see each other's documents. Tests run as the first, the master."""

    def __init__(self) -> None:
        self.published: dict[str, dict[str, Any]] = {"ai/w-0": {}, "ai/w-1": {"sshd": {"port": 22}}}
        self.phase = "Running"
        self.over = False
        self.master = threading.current_thread()

    @property
    def me(self) -> str:
        return "ai/w-0" if threading.current_thread() is self.master else "ai/w-1"

    def load(self) -> view.View:
        if self.over and self.me != "ai/w-0":
            raise Stopped
        pods = {
            key: view.Pod(
                key, {"node": "n", "phase": self.phase if key != "ai/w-0" else "Running", "state": dict(documents)}
            )
            for key, documents in self.published.items()
        }
        return view.View({"n": {"ready": True}}, pods, pods[self.me])

    def publish(self, name: str, document: dict[str, Any]) -> None:
        self.published[self.me][name] = document

    def ranks(self, each: int = 1) -> list[Rank]:
        pods = self.load().pods.values()
        placed = [(pod, local) for pod in pods for local in range(each)]
        return [Rank(pod, local, each, number) for number, (pod, local) in enumerate(placed)]


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    found = Nodes()
    monkeypatch.setattr(view, "load", found.load)
    monkeypatch.setattr(view, "publish", found.publish)

    def serve() -> None:
        with contextlib.suppress(Stopped):
            ranks.serve()

    sshd = threading.Thread(target=serve)
    sshd.start()
    yield found
    found.over = True
    sshd.join()


def run(nodes: Nodes, script: str, variables: Mapping[str, str] | None = None, each: int = 1) -> Sequence[ranks.Ended]:
    return ranks.run(nodes.ranks(each), ["bash", "-c", script], variables or {})


def test_runs_each_rank_with_open_mpis_variables(nodes: Nodes) -> None:
    script = 'echo "$OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE, $OMPI_COMM_WORLD_LOCAL_RANK here, $GREETING"'
    ended = run(nodes, script, {"GREETING": "hello"}, each=2)
    assert [rank.output for rank in ended] == [
        "0 of 4, 0 here, hello\n",
        "1 of 4, 1 here, hello\n",
        "2 of 4, 0 here, hello\n",
        "3 of 4, 1 here, hello\n",
    ]


def test_ranks_do_not_inherit_the_containers_environment(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_POD", "yes")
    assert {rank.output for rank in run(nodes, "echo ${SECRET_OF_THE_POD:-no}")} == {"no\n"}


def test_does_not_start_ranks_after_a_failed_one_on_its_node(nodes: Nodes) -> None:
    ended = run(nodes, "[[ $OMPI_COMM_WORLD_LOCAL_RANK != 1 ]] || exit 7", each=3)
    assert [(rank.rank, rank.code) for rank in ended] == [(0, 0), (1, 7), (3, 0), (4, 7)]


def test_a_signal_has_an_exit_code(nodes: Nodes) -> None:
    assert {rank.code for rank in run(nodes, "kill -9 $$")} == {137}


def test_reports_a_missing_program(nodes: Nodes) -> None:
    ended = ranks.run(nodes.ranks(), ["metaseq-rain"], {})
    assert {rank.code for rank in ended} == {1}
    assert "unable to find or run the executable metaseq-rain: No such file or directory" in ended[0].output


def test_a_lost_node_ends_the_job(nodes: Nodes) -> None:
    placed = nodes.ranks()
    nodes.phase = "Failed"
    with pytest.raises(MpiError, match="lost communication with a remote daemon: w-1 is gone"):
        programs.run(placed, ["true"], {})


def test_a_node_without_sshd_ends_the_job(nodes: Nodes) -> None:
    placed = nodes.ranks()
    del nodes.published["ai/w-1"]["sshd"]
    nodes.over = True
    with pytest.raises(MpiError, match="lost communication with a remote daemon: w-1 is gone"):
        programs.run(placed, ["true"], {})


def test_prints_the_output_of_a_program(nodes: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    assert programs.run(nodes.ranks(), ["echo", "hello"], {}, tag=True) == (0, 0)
    assert capsys.readouterr().out == "[1,0]<stdout>:hello\n[1,1]<stdout>:hello\n"


def test_rejects_different_frameworks(nodes: Nodes) -> None:
    script = f'echo "{{\\"module\\": \\"m$OMPI_COMM_WORLD_RANK\\", \\"options\\": {{}}}}" >"${ranks.CALL}"'
    with pytest.raises(MpiError, match="different frameworks: m0, m1"):
        programs.run(nodes.ranks(), ["bash", "-c", script], {})
