from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from config.data import skus
from simulator.sandbox.library import nccl_net, view
from simulator.world import network, performance, snapshot
from simulator.world.boots import BootStore
from simulator.world.faults import Fault, FaultError, FaultKind, FaultStore, new_fault
from simulator.world.hardware import NodeHardware, node_hardware
from tests.support.case_files import case_table
from tests.support.sizes import H100

NODE, SIBLING, OTHER_POOL = "aks-gpu-22222222-vmss000000", "aks-gpu-22222222-vmss000001", "aks-b-33333333-vmss000000"


def _hardware(node: str = NODE, *faults: Fault, sku: str = H100) -> NodeHardware:
    return node_hardware(skus.sku(sku), node, faults)


def _partition(hardware: NodeHardware) -> set[str]:
    return {hca.pkey for hca in hardware.hcas if hca.link_layer == "InfiniBand"}


def test_hardware_depends_only_on_sku_name_and_faults() -> None:
    assert _hardware() == _hardware()
    both = [*_hardware().gpus, *_hardware(SIBLING).gpus]
    assert len({gpu.uuid for gpu in both}) == len(both)


def test_h100_has_azures_pci_addresses() -> None:
    hardware = _hardware()
    assert [gpu.pci[:4] for gpu in hardware.gpus] == ["0001", "0002", "0003", "0008", "0009", "000a", "000b", "000c"]
    assert [hca.pci[:4] for hca in hardware.hcas[:8]] == [f"010{number}" for number in range(1, 9)]
    assert (hardware.hcas[8].name, hardware.hcas[8].link_layer) == ("mlx5_8", "Ethernet")
    assert {(device.vendor, device.pci_class) for device in hardware.pci} == {
        ("10de", "0302"),
        ("15b3", "0207"),
        ("15b3", "0200"),
        ("1414", "0108"),
    }


@pytest.mark.parametrize("sku", ["Standard_NC4as_T4_v3", "Standard_D4ads_v5"])
def test_sizes_without_infiniband_still_have_an_ethernet_function(sku: str) -> None:
    assert [hca.link_layer for hca in _hardware(sku=sku).hcas] == ["Ethernet"]


def test_a_scale_set_is_one_partition_without_faulty_nodes() -> None:
    assert _partition(_hardware()) == _partition(_hardware(SIBLING))
    assert _partition(_hardware()) != _partition(_hardware(OTHER_POOL))
    assert _partition(_hardware(NODE, new_fault("partition", NODE))) != _partition(_hardware())


def test_faults_show_on_their_node_only() -> None:
    faults = (
        new_fault("gpu", NODE, "3"),
        new_fault("ecc", NODE, "4"),
        new_fault("thermal", NODE, "5"),
        new_fault("remap", NODE, "6"),
        new_fault("nvlink", NODE, "7"),
        new_fault("xid", NODE, "7", code=31),
        new_fault("flapping", NODE, "mlx5_0"),
        new_fault("hca", NODE, "mlx5_1"),
        new_fault("link", NODE, "mlx5_2", 100),
        new_fault("node", NODE),
    )
    broken, sibling = _hardware(NODE, *faults), _hardware(SIBLING, *faults)
    assert [gpu.index for gpu in broken.gpus if not gpu.healthy] == [3]
    assert [gpu.index for gpu in broken.gpus if gpu.remap_pending] == [4]
    assert [gpu.index for gpu in broken.gpus if gpu.slowed] == [5]
    assert [gpu.index for gpu in broken.gpus if gpu.remap_failed] == [6]
    assert [gpu.index for gpu in broken.gpus if gpu.lost_links] == [7]
    assert [gpu.xids for gpu in broken.gpus] == [(), (), (), (79,), (63,), (), (64,), (31, 74)]
    assert [hca.name for hca in broken.hcas if hca.flapping] == ["mlx5_0"]
    assert [hca.name for hca in broken.hcas if hca.state == "DOWN"] == ["mlx5_1"]
    assert (broken.hcas[2].gbps, broken.hcas[2].rated_gbps) == (100, 400)
    assert not broken.up
    assert sibling == _hardware(SIBLING)


def test_a_slow_rail_slows_an_hca_of_all_nodes_without_a_visible_cause() -> None:
    rail = new_fault("rail", device="mlx5_2", gbps=100)
    for node in (NODE, SIBLING):
        hcas = _hardware(node, rail).hcas
        assert [(hca.gbps, hca.rail_gbps) for hca in hcas[1:4]] == [(400, 400), (400, 100), (400, 400)]
    here = {"hcas": [asdict(hca) for hca in _hardware(NODE, rail, new_fault("link", NODE, "mlx5_2", 200)).hcas]}
    assert nccl_net.Network(network.INFINIBAND, tuple(here["hcas"][1:4])).speeds == (1.0, 0.25, 1.0)


@case_table(__file__, "refused", file="faults")
def test_rejects_impossible_faults(arguments: list[Any], message: str) -> None:
    options = next((each for each in arguments if isinstance(each, dict)), {})
    with pytest.raises(FaultError, match=message):
        new_fault(*(each for each in arguments if not isinstance(each, dict)), **options)


def test_the_store_keeps_replaces_and_deletes_faults(tmp_path: Path) -> None:
    store = FaultStore(tmp_path)
    store.fault(new_fault("link", NODE, "mlx5_0", 200))
    store.fault(new_fault("link", NODE, "mlx5_0", 100))
    store.fault(new_fault("node", SIBLING))
    assert FaultStore(tmp_path).load() == (new_fault("link", NODE, "mlx5_0", 100), new_fault("node", SIBLING))
    assert store.heal(node=SIBLING) == (new_fault("node", SIBLING),)
    assert [fault.kind for fault in store.load()] == [FaultKind.LINK]
    assert store.heal()
    assert store.load() == ()


def test_a_reboot_heals_only_faults_that_a_gpu_reset_fixes(tmp_path: Path) -> None:
    store = FaultStore(tmp_path)
    healed = (new_fault("ecc", NODE, "1"), new_fault("xid", NODE, "1", code=48), new_fault("xid", NODE, "1", code=31))
    stay = [new_fault(kind, NODE, "2") for kind in ("gpu", "nvlink", "remap", "thermal")]
    stay += [new_fault(kind, NODE, "mlx5_1") for kind in ("flapping", "hca")]
    for fault in (*healed, *stay, new_fault("ecc", SIBLING, "1")):
        store.fault(fault)
    assert set(store.reboot(NODE)) == set(healed)
    assert set(store.load()) == {*stay, new_fault("ecc", SIBLING, "1")}


def test_the_store_keeps_the_time_of_the_last_boot(tmp_path: Path) -> None:
    store = BootStore(tmp_path, clock=lambda: 1000.0)
    assert store.last(NODE) == 0
    store.boot(NODE)
    assert (BootStore(tmp_path).last(NODE), BootStore(tmp_path).last(SIBLING)) == (1000.0, 0)


def test_a_fault_with_seconds_expires(tmp_path: Path) -> None:
    now = 1000.0
    store = FaultStore(tmp_path, clock=lambda: now)
    store.fault(new_fault("throttle", seconds=30))
    store.fault(new_fault("capacity", size=H100))
    now += 29
    assert [str(fault) for fault in store.load()] == [f"capacity {H100}", "throttle for 30 s"]
    now += 1
    assert store.load() == (new_fault("capacity", size=H100),)
    assert store.heal("throttle") == ()


def test_the_error_of_a_damaged_store_has_the_fix(tmp_path: Path) -> None:
    (tmp_path / "faults.json").write_text("[{]")
    with pytest.raises(FaultError, match="delete the file"):
        FaultStore(tmp_path).load()


def test_a_snapshot_has_the_facts_of_pods() -> None:
    memory = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}
    context = {"capabilities": {"add": ["IPC_LOCK"]}}
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]
    pod = {
        "metadata": {"namespace": "ai", "name": "w-0"},
        "spec": {
            "nodeName": NODE,
            "subdomain": "w",
            "containers": [{"securityContext": context, "volumeMounts": mounts}],
            "volumes": [memory],
        },
        "status": {"phase": "Running", "podIP": "10.244.0.4"},
    }
    allocation = {"ai/w-0": {"gpus": [0], "hcas": ["mlx5_0"]}}
    world = snapshot.snapshot([], [pod], {}, allocation, {"ai/w-0": {"sshd": {"port": 22}}})
    found = world["pods"]["ai/w-0"]
    assert (found["hostname"], found["shm_bytes"], found["capabilities"]) == ("w-0", 2**31, ["IPC_LOCK"])
    assert (found["gpus"], found["hcas"], found["state"]) == ([0], ["mlx5_0"], {"sshd": {"port": 22}})
    json.dumps(world)


def test_reads_states_from_regular_json_files_only(tmp_path: Path) -> None:
    folder = tmp_path / "pod"
    folder.mkdir()
    (tmp_path / "secret.json").write_text('{"token": "hush"}')
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "half.json").write_text('{"port"')
    os.mkfifo(folder / "pipe.json")
    (folder / "ranks.json").write_text('{"id": 1}')
    assert snapshot.states_of(folder) == {"ranks": {"id": 1}}
    assert snapshot.states_of(tmp_path / "nowhere") == {}


def test_the_state_of_a_daemon_expires_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "FOLDER", tmp_path)
    (tmp_path / "pod").mkdir()
    view.publish("sshd", {"port": 22})
    assert snapshot.states_of(tmp_path / "pod") == {}
    with view.hold("sshd"):
        for _ in range(2):  # a read changes nothing
            assert snapshot.states_of(tmp_path / "pod") == {"sshd": {"port": 22}}
    assert snapshot.states_of(tmp_path / "pod") == {}


FULL = ((1.0,) * 8,) * 2
SLOW = (FULL[0], (0.25, *FULL[0][1:]))
GIB16 = 16 * 2**30


@pytest.mark.parametrize(
    ("collective", "gbs"),
    [
        (network.Collective(H100, 1, 8, nvlink_sharp=True), 476),
        (network.Collective(H100, 1, 8), 370),
        (network.Collective(H100, 2, 8, links=FULL, sharp=True), 450),
        (network.Collective(H100, 2, 8, links=FULL), 384),
        (network.Collective(H100, 2, 8, links=SLOW, sharp=True), 112.5),
        (network.Collective(H100, 2, 8, links=(FULL[0][1:], FULL[0])), 192),
        (network.Collective(H100, 2, 1, links=((1.0,), (1.0,))), 48),
        (network.Collective(H100, 3, 1, links=((1.0,), (1.0,), (0.25,))), 11.5),
        (network.Collective(H100, 3, 6, links=((1.0,) * 6,) * 3), 276),
        (network.Collective(H100, 2, 8, links=FULL, aligned=False), 172.8),
        (network.Collective(H100, 2, 8, network.SOCKET), 3.1),
        (network.Collective("Standard_ND96asr_v4", 2, 8, links=FULL), 187),
        (network.Collective("Standard_NC4as_T4_v3", 2, 1, network.SOCKET), 3.1),
    ],
)
def test_the_bandwidth_of_large_messages(collective: network.Collective, gbs: float) -> None:
    assert network.bus_bandwidth(collective, GIB16, performance.numbers()) == pytest.approx(gbs, rel=0.005)


def test_every_healthy_size_reaches_its_floor() -> None:
    for sku in skus.catalogue().values():
        if not (sku.nccl_busbw and sku.infiniband):
            continue
        links = (1.0,) * sku.infiniband.hcas
        for nodes in (1, 2, 5):
            collective = network.Collective(sku.name, nodes, sku.gpus, links=(links,) * nodes, nvlink_sharp=True)
            floor = sku.busbw_floor(nodes)
            assert floor is not None
            assert network.bus_bandwidth(collective, GIB16, performance.numbers()) > floor


def test_averages_agree_with_measurements() -> None:
    sizes = [8 * 2**step for step in range(31)]

    def average(collective: network.Collective) -> float:
        return sum(network.bus_bandwidth(collective, size, performance.numbers()) for size in sizes) / len(sizes)

    assert average(network.Collective("Standard_ND96asr_v4", 2, 8, links=FULL)) == pytest.approx(56.4, rel=0.06)
    assert average(network.Collective("Standard_ND96asr_v4", 2, 8, network.SOCKET)) == pytest.approx(1.39, rel=0.06)
