from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from config.data import skus
from config.data.content_tags import IMAGES
from config.rules.labels import label_problems
from operators.node_labeler import pod_spec
from simulator.sandbox import devices, machine, sandbox
from simulator.sandbox.spec import Mount
from simulator.sandbox.uplink import Uplink
from simulator.world import hyperv
from simulator.world.faults import Fault, FaultKind
from simulator.world.hardware import NodeHardware, node_hardware
from tests.support.sizes import H100, T4
from tests.unit.simulator.sandbox.api import Api, served
from tests.unit.simulator.sandbox.node import NAME, Node

POD = pod_spec("registry.test/node-labeler:1")
LABELER = POD["containers"][0]
UPSTREAM_KEYS = [  # of the example in edwardsp/ai-on-aks
    "HostName", "HostingSystemEditionId", "HostingSystemNestedLevel", "HostingSystemOsMajor", "HostingSystemOsMinor",
    "HostingSystemProcessorArchitecture", "HostingSystemProcessorIdleStateMax", "HostingSystemProcessorThrottleMax",
    "HostingSystemProcessorThrottleMin", "HostingSystemSpMajor", "HostingSystemSpMinor", "PhysicalHostName",
    "PhysicalHostNameFullyQualified", "VirtualMachineDynamicMemoryBalancingEnabled", "VirtualMachineId",
    "VirtualMachineName",
]  # fmt: skip


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("node_labeler", IMAGES / "node-labeler" / "node_labeler.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


labeler = script()


def hardware(sku: str = H100, *faults: Fault) -> NodeHardware:
    return node_hardware(skus.sku(sku), NAME, faults)


# -- records -----------------------------------------------------------------------------------------------------------


def test_records_have_a_fixed_length() -> None:
    pool = hyperv.record("HostName", "XXX000000000000") + hyperv.record("HostingSystemOsMajor", "10")
    assert len(pool) == 2 * 2560
    assert labeler.records(pool) == {"HostName": "XXX000000000000", "HostingSystemOsMajor": "10"}


@pytest.mark.parametrize(
    ("pool", "found"),
    [
        (b"", {}),
        (hyperv.record("a", "1") + b"half a record", {"a": "1"}),
        (hyperv.record("a", "1") + hyperv.record("a", "2"), {"a": "2"}),
        (b"k\0rest of an older key".ljust(512, b"\0") + b"v\0older".ljust(2048, b"\0"), {"k": "v"}),
        (b"\xff\xfe".ljust(512, b"\0") + b"v".ljust(2048, b"\0"), {"\ufffd\ufffd": "v"}),
        (bytes(2560), {"": ""}),
    ],
    ids=["empty", "half written", "twice", "rest of a longer text", "not UTF-8", "zeros"],
)
def test_reads_damaged_pools(pool: bytes, found: dict[str, str]) -> None:
    assert labeler.records(pool) == found


def test_a_simulated_node_has_the_keys_of_a_real_node() -> None:
    assert sorted(labeler.records(hyperv.pool(hardware()))) == UPSTREAM_KEYS


# -- labels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("168", "168"),
        ("DC44D3EB-FA17-4AAB-AE16-E5C5352CB236", "DC44D3EB-FA17-4AAB-AE16-E5C5352CB236"),
        ("host.example.com", "host.example.com"),
        ("two words / a slash", "two-words-a-slash"),
        ("-._trimmed_.-", "trimmed"),
        ("x" * 70, "x" * 63),
        ("y" * 62 + "-z", "y" * 62),
        ("Rechner-Größe", "Rechner-Gr-e"),
        ("???", ""),
        ("", ""),
    ],
)
def test_converts_texts_to_valid_label_values(text: str, label: str) -> None:
    assert labeler.label_text(text) == label


def test_records_without_key_or_value_have_no_label() -> None:
    pool = hyperv.record("Empty", "") + hyperv.record("", "x") + hyperv.record("Signs", "//") + hyperv.record("A", "b")
    assert labeler.hyperv_labels(pool) == {"hyperv/A": "b"}


def test_all_labels_are_valid_in_kubernetes(tmp_path: Path) -> None:
    devices.write_sys(tmp_path, hardware())
    labels = {
        **labeler.hyperv_labels(hyperv.pool(hardware())),
        **labeler.infiniband_labels(tmp_path / "class" / "infiniband"),
    }
    foreign = {f"example.com/{name.partition('/')[2]}": value for name, value in labels.items()}
    assert len(foreign) == len(labels)
    assert list(label_problems(foreign, ("labels",))) == []


def test_only_infiniband_devices_have_labels(tmp_path: Path) -> None:
    devices.write_sys(tmp_path, hardware())
    labels = labeler.infiniband_labels(tmp_path / "class" / "infiniband")
    assert sorted(labels) == [f"ai-on-aks/ib-guid-mlx5_{index}" for index in range(8)] + ["ai-on-aks/ib-pkey"]
    assert labels["ai-on-aks/ib-pkey"] == hardware().hcas[0].pkey
    assert labels["ai-on-aks/ib-guid-mlx5_0"] == hardware().hcas[0].guid.replace(":", "")
    assert re.fullmatch("[0-9a-f]{16}", labels["ai-on-aks/ib-guid-mlx5_0"])


def test_the_label_has_all_partitions(tmp_path: Path) -> None:
    devices.write_sys(tmp_path, hardware())
    (tmp_path / "class/infiniband/mlx5_3/ports/1/pkeys/0").write_text("0x8abc\n")
    pkey = labeler.infiniband_labels(tmp_path / "class" / "infiniband")["ai-on-aks/ib-pkey"]
    assert sorted(pkey.split("_")) == sorted({"0x8abc", hardware().hcas[0].pkey})


def test_nodes_without_infiniband_have_no_labels(tmp_path: Path) -> None:
    devices.write_sys(tmp_path, hardware(T4))
    assert labeler.infiniband_labels(tmp_path / "class" / "infiniband") == {}
    assert labeler.infiniband_labels(tmp_path / "no-such-folder") == {}


def test_removes_only_its_own_labels() -> None:
    present = {"hyperv/Gone": "1", "hyperv/Kept": "1", "hyperv/Changed": "1", "ai-on-aks/ib-pkey": "0x8001"}
    others = {"ai-on-aks/pool": "gpu", "ai-on-aks/gpu": "true", "kubernetes.io/hostname": "n", "team": "a"}
    wanted = {"hyperv/Kept": "1", "hyperv/Changed": "2", "hyperv/New": "3"}
    assert labeler.changes({**present, **others}, wanted) == {
        "hyperv/Gone": None,
        "ai-on-aks/ib-pkey": None,
        "hyperv/Changed": "2",
        "hyperv/New": "3",
    }
    assert labeler.changes({**wanted, **others}, wanted) == {}


# -- the script in its sandbox -----------------------------------------------------------------------------------------


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture
def api(tmp_path: Path, node: Node) -> Iterator[Api]:
    with served(NAME, tmp_path) as api:
        uplink = Uplink(tmp_path / "world", lambda address: address == ("127.0.0.1", api.port), "")
        yield api
        uplink.stop()


def run_until(node: Node, api: Api, seen: Callable[[str], bool]) -> str:
    env = {"NODE_NAME": NAME, "INTERVAL_SECONDS": "0.1"}
    account = Mount(api.account, "/var/run/secrets/kubernetes.io/serviceaccount")
    hyperv_files = Mount(node.root / "var/lib/hyperv", "/var/lib/hyperv")
    spec = node.spec(POD, LABELER, env=env, api_port=api.port, mounts=(account, hyperv_files))
    log = node.folder / "labeler.log"
    with log.open("wb") as stream:
        process = sandbox.start(spec, stream.fileno())
        try:
            deadline = time.monotonic() + 30
            while not seen(log.read_text()):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
        finally:
            process.kill()
            process.wait(10)
    return log.read_text()


def test_labels_the_node(node: Node, api: Api) -> None:
    api.labels = {"hyperv/PhysicalHostName": "before-the-move", "hyperv/Old": "1", "ai-on-aks/gpu": "true"}
    log = run_until(node, api, lambda _: bool(api.patches))
    expected = {f"hyperv/{key}": value for key, value in hyperv.pairs(hardware()).items()}
    assert expected.items() <= api.labels.items()
    assert api.labels["ai-on-aks/ib-pkey"] == hardware().hcas[0].pkey
    assert api.labels["ai-on-aks/gpu"] == "true"
    assert "hyperv/Old" not in api.labels
    assert "removed hyperv/Old" in log


def test_does_not_patch_a_correct_node(node: Node, api: Api) -> None:
    run_until(node, api, lambda _: api.reads > 3)
    assert len(api.patches) == 1


def test_updates_a_changed_partition(node: Node, api: Api) -> None:
    def seen(_: str) -> bool:
        if not api.patches:
            return False
        machine.write(node.root, hardware(H100, Fault(NAME, FaultKind.PARTITION)))
        return len(api.patches) > 1

    run_until(node, api, seen)
    alone = hardware(H100, Fault(NAME, FaultKind.PARTITION)).hcas[0].pkey
    assert api.patches[1] == {"ai-on-aks/ib-pkey": alone}


def test_labels_infiniband_without_hyperv_files(node: Node, api: Api) -> None:
    (node.root / machine.KVP_POOL).unlink()
    run_until(node, api, lambda _: bool(api.patches))
    assert {name.partition("/")[0] for name in api.labels} >= {"ai-on-aks"}


def test_logs_missing_rights_and_retries(node: Node, api: Api) -> None:
    api.forbidden = True

    def seen(log: str) -> bool:
        if "is forbidden" in log:
            api.forbidden = False
        return bool(api.patches)

    assert "403" in run_until(node, api, seen)


def test_cannot_reach_another_server_of_the_machine(node: Node, api: Api, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with served(NAME, tmp_path / "other") as other:
        port, other_port = api.port, other.port
        api.port = other_port  # the uplink rejects this port
        try:
            log = run_until(node, api, lambda log: "ERROR" in log)
        finally:
            api.port = port
        assert "retrying" in log
        assert other.patches == []
