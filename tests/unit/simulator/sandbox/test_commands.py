from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from simulator.sandbox.commands import mpirun
from simulator.sandbox.images import image_name, image_named
from simulator.sandbox.library import keys, mpi_arguments, nccl_net, nccl_tests, ssh_access, topology, view
from simulator.sandbox.library.mpi_arguments import MpiError
from simulator.world.network import INFINIBAND, SOCKET
from tests.support.case_files import case_table
from tests.unit.simulator.sandbox.mpi_pods import key_pair

HCA = {"name": "mlx5_0", "link_layer": "InfiniBand", "state": "ACTIVE", "gbps": 400, "rated_gbps": 400}


def _pod(name: str = "w-0", **facts: Any) -> view.Pod:
    defaults = {
        "node": "n0", "phase": "Running", "ip": "10.244.0.4", "hostname": name, "subdomain": "w", "gpus": [],
        "hcas": ["mlx5_0"], "capabilities": [], "shm_bytes": 0,
    }  # fmt: skip
    return view.Pod(f"ai/{name}", defaults | facts)


def _world(*pods: view.Pod, ready: bool = True, hcas: list[dict[str, Any]] | None = None) -> view.View:
    node = {"sku": "", "ready": ready, "cpus": 96, "gpus": [], "hcas": hcas if hcas is not None else [HCA]}
    return view.View({"n0": node}, {pod.key: pod for pod in pods}, pods[0])


def test_mpirun_parses_azures_command_line() -> None:
    line = (
        "--allow-run-as-root -np 16 --hostfile hosts --map-by ppr:8:node:pe=12 --bind-to core -mca coll_hcoll_enable 0 "
        "-x NCCL_DEBUG=INFO -x PATH --tag-output all_reduce_perf -b 8"
    )
    options = mpi_arguments.parse(line.split())
    assert (options.np, options.per_node, options.cores, options.map_by) == (16, 8, 12, "ppr")
    assert options.program == ("all_reduce_perf", "-b", "8")
    assert options.mca == {"coll_hcoll_enable": "0"}
    assert mpi_arguments.exported(options, {}) == ({"NCCL_DEBUG": "INFO"}, ["PATH"])


@case_table(__file__, "refused_by_mpirun")
def test_mpirun_rejects_invalid_arguments(line: str, message: str) -> None:
    with pytest.raises(MpiError, match=message):
        mpi_arguments.parse(line.split())


@case_table(__file__, "places")
def test_places_ranks(line: str, counts: list[int]) -> None:
    pods = [(_pod("w-0"), 8), (_pod("w-1"), 8)]
    ranks = mpirun.place(mpi_arguments.parse(line.split()), pods)
    assert [sum(rank.pod is pod for rank in ranks) for pod, _ in pods] == counts
    assert [rank.local for rank in ranks if rank.pod is pods[0][0]] == list(range(counts[0]))
    assert [rank.number for rank in ranks] == list(range(sum(counts)))


@case_table(__file__, "numbers")
def test_numbers_ranks_by_node_or_by_slot(line: str, nodes: list[int]) -> None:
    pods = [(_pod("w-0"), 8), (_pod("w-1"), 8)]
    ranks = mpirun.place(mpi_arguments.parse(line.split()), pods)
    assert [int(rank.pod.hostname[-1]) for rank in ranks] == nodes


@pytest.mark.parametrize("line", ["-np 17 x", "-np 17 --map-by ppr:8:node --oversubscribe x"])
def test_rejects_too_many_ranks(line: str) -> None:
    with pytest.raises(MpiError, match="17"):
        mpirun.place(mpi_arguments.parse(line.split()), [(_pod("w-0"), 8), (_pod("w-1"), 8)])


def test_reads_host_files(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("# workers\nw-0.w slots=8\n\nw-1.w\n")
    options = mpi_arguments.parse(["--hostfile", str(tmp_path / "hosts"), "x"])
    assert mpirun.hosts_of(options) == [mpirun.Host("w-0.w", 8), mpirun.Host("w-1.w")]
    with pytest.raises(MpiError, match="No such file"):
        mpirun.hosts_of(mpi_arguments.parse(["--hostfile", str(tmp_path / "none"), "x"]))


@pytest.mark.parametrize(("text", "size"), [("8", 8), ("32M", 2**25), ("16G", 2**34), ("1.5k", 1536)])
def test_parses_message_sizes(text: str, size: int) -> None:
    assert nccl_tests.size(text) == size


@pytest.mark.parametrize("line", ["-b 8X", "-b 2G -e 1G", "-q 3", "-d complex", "-g", "stray", "-f 1.5", "-n ten"])
def test_nccl_tests_rejects_invalid_arguments(line: str) -> None:
    with pytest.raises(nccl_tests.UsageError):
        nccl_tests.parse(line.split())


@pytest.mark.parametrize("line", ["-i 0", "-b 8 -e 1M -f 1 -i 0", "-b 0 -e 1M -f 2"])
def test_nccl_tests_rejects_endless_steps(line: str) -> None:
    with pytest.raises(nccl_tests.UsageError, match="would never end"):
        nccl_tests.parse(line.split())


@case_table(__file__, "steps")
def test_nccl_tests_steps_by_factor_or_by_bytes(line: str, sizes: list[int]) -> None:
    options = nccl_tests.parse(line.split())
    assert list(nccl_tests._sizes(options, nccl_tests.size(options["e"]))) == sizes


def test_nccl_tests_limits_sizes_to_the_memory() -> None:
    assert list(nccl_tests._sizes(nccl_tests.parse(["-b", "16G", "-e", "16G"]), 2**33)) == [2**33]


def test_nccl_tests_parses_short_and_long_options() -> None:
    options = nccl_tests.parse(["-b8", "-e", "16G", "--stepfactor=2", "--ngpus", "1", "-c", "0"])
    assert (options["b"], options["e"], options["f"], options["g"], options["c"]) == ("8", "16G", "2", "1", "0")


@case_table(__file__, "devices")
def test_selects_devices_by_pattern(pattern: str, name: str, chosen: bool) -> None:
    assert nccl_net.selected(name, pattern) is chosen


def test_chooses_the_network_by_the_pods_devices() -> None:
    assert nccl_net.choose(_world(_pod()), _pod(), {}).transport == INFINIBAND
    assert nccl_net.choose(_world(_pod(hcas=[])), _pod(hcas=[]), {}).transport == SOCKET
    assert nccl_net.choose(_world(_pod()), _pod(), {"NCCL_IB_DISABLE": "1"}).transport == SOCKET
    down = [HCA | {"state": "DOWN"}]
    assert nccl_net.choose(_world(_pod(), hcas=down), _pod(), {}).transport == SOCKET
    assert nccl_net.choose(_world(_pod()), _pod(hcas=[], privileged=True), {}).transport == INFINIBAND


@pytest.mark.parametrize(
    ("pattern", "name"), [("", "eth0"), ("eth0", "eth0"), ("=lo", "lo"), ("ens", None), ("^lo", "eth0")]
)
def test_selects_the_bootstrap_interface(pattern: str, name: str | None) -> None:
    assert nccl_net.interface({"NCCL_SOCKET_IFNAME": pattern}) == name


def _ssh_folder(folder: Path, mode: int = 0o600) -> Path:
    (folder / "id_rsa").write_text(key_pair()[0])
    (folder / "id_rsa").chmod(mode)
    (folder / "config").write_text("StrictHostKeyChecking no\nHost short\n  HostName w-1.w\n")
    return folder


def _server(**facts: Any) -> view.Pod:
    state = {"port": 22, "authorized_keys": keys.authorized(key_pair()[1])}
    return _pod("w-1", ip="10.244.0.5", state={"sshd": facts.pop("sshd", state)}, **facts)


@pytest.mark.parametrize("host", ["w-1.w", "w-1.w.ai.svc.cluster.local", "10.244.0.5", "short"])
def test_ssh_connects_to_a_server_with_the_key(tmp_path: Path, host: str) -> None:
    server = _server()
    assert ssh_access.connect(_world(_pod(), server), host, {}, _ssh_folder(tmp_path)) is server


@pytest.mark.parametrize(
    ("host", "server", "ready", "message"),
    [
        ("w-2.w", _server(), True, "Could not resolve hostname w-2.w"),
        ("w-1", _server(), True, "Could not resolve hostname w-1"),
        ("w-1.w", _server(sshd=None), True, "Connection refused"),
        ("w-1.w", _server(phase="Succeeded"), True, "Could not resolve hostname w-1.w"),
        ("w-1.w", _server(), False, "^ssh: connect to host w-1.w port 22: Connection timed out$"),
        ("10.244.0.77", _server(), True, "^ssh: connect to host 10.244.0.77 port 22: Connection timed out$"),
        (
            "10.244.0.5",
            _server(phase="Failed"),
            True,
            "^ssh: connect to host 10.244.0.5 port 22: Connection timed out$",
        ),
        ("w-1.w", _server(sshd={"port": 22, "authorized_keys": []}), True, "Permission denied"),
    ],
)
def test_ssh_has_the_real_error(tmp_path: Path, host: str, server: view.Pod, ready: bool, message: str) -> None:
    with pytest.raises(ssh_access.SshError, match=message):
        ssh_access.connect(_world(_pod(), server, ready=ready), host, {}, _ssh_folder(tmp_path))


def test_mpirun_tries_all_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(view, "load", lambda: _world(_pod(), _server(sshd=None)))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert mpirun.main(["-host", "w-1.w,w-9.w,10.244.0.77", "true"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "ssh: connect to host w-1.w port 22: Connection refused",
        "ssh: Could not resolve hostname w-9.w: Name or service not known",
        "ssh: connect to host 10.244.0.77 port 22: Connection timed out",
        mpirun.RULE,
        "ORTE was unable to reliably start one or more daemons.",
        mpirun.RULE,
    ]


def test_a_name_resolves_to_the_running_pod() -> None:
    tries = {"ai/w-0-a": _pod("w-0", phase="Failed", ip="10.244.0.9"), "ai/w-0-b": _pod("w-0", ip="10.244.0.4")}
    before, now = (view.Pod(key, pod.facts) for key, pod in tries.items())
    assert _world(_pod("other", ip="10.244.0.7"), before, now).resolve("w-0.w") is now


@pytest.mark.parametrize(
    ("host", "found"),
    [("w-0.w", False), ("w-0.w.blue", True), ("w-0.w.blue.svc.cluster.local", True), ("10.244.0.9", True)],
)
def test_resolves_pods_of_other_namespaces_by_address_or_qualified_name(host: str, found: bool) -> None:
    other = view.Pod("blue/w-0", _pod("w-0", ip="10.244.0.9").facts)
    assert (_world(_pod("me", ip="10.244.0.7"), other).resolve(host) is other) is found


def test_ssh_rejects_a_key_that_others_can_read(tmp_path: Path) -> None:
    with pytest.raises(ssh_access.SshError, match="too open"):
        ssh_access.connect(_world(_pod(), _server()), "w-1.w", {}, _ssh_folder(tmp_path, 0o644))


def test_ssh_rejects_unknown_host_keys(tmp_path: Path) -> None:
    with pytest.raises(ssh_access.SshError, match="Host key verification failed"):
        ssh_access.connect(_world(_pod(), _server()), "w-1.w", {"stricthostkeychecking": "yes"}, _ssh_folder(tmp_path))


def test_reads_openssh_keys() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    encoding = serialization.Encoding
    private = key.private_bytes(encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    public = key.public_key().public_bytes(encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert keys.authorized(public.decode() + " root@host\n") == [keys.public_key(private.decode())]


@pytest.mark.parametrize(
    "text", ["", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n", "-----BEGIN EC PRIVATE KEY-----\nAAAA\n"]
)
def test_rejects_invalid_keys(text: str) -> None:
    with pytest.raises(keys.BadKey):
        keys.public_key(text)


def test_compares_topology_files_with_the_node() -> None:
    pci = '<pci busid="{}" class="0x060400">{}</pci>'
    pair = '<pci busid="{}" class="0x030200"/><pci busid="{}" class="0x020700"/>'
    text = '<system version="1"><cpu numaid="0">' + pci.format("ffff:ff:01.0", pair) + "</cpu></system>"
    right = topology.parse(text.format("0001:00:00.0", "0101:00:00.0"))
    assert topology.aligned(right, ["0001:00:00.0"], ["0101:00:00.0"])
    assert not topology.aligned(right, ["0002:00:00.0"], ["0101:00:00.0"])
    assert "error" in topology.parse("<system>")
    assert "error" in topology.parse("<config/>")


def test_finds_images_by_the_last_part_of_their_name() -> None:
    assert image_name("acr.azurecr.io/team/nccl-test:1.0@sha256:0") == "nccl-test"
    assert image_name("host:5000/nccl-test") == "nccl-test"
    assert "/usr/local/bin/all_reduce_perf" in image_named("nccl-test").commands
