"""Sets up a simulated NCCL communicator: logs NCCL's lines, fails like NCCL, and determines the speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from simulator.sandbox.library import nccl_net, topology, view
from simulator.sandbox.library.nccl_log import Log, Process, pause
from simulator.sandbox.library.nccl_net import Network
from simulator.world.network import INFINIBAND, SOCKET, Collective

VERSION = "NCCL version 2.27.3+cuda12.8"
PLUGIN = "IBext_v10"  # nccl-rdma-sharp-plugins, src/ib_plugin.c
SHM_PER_GPU = 9637888  # bytes of a rank's segment in /dev/shm, as in nccl#525
SYSTEM_ERROR = "unhandled system error (run with NCCL_DEBUG=INFO for details)"
INVALID_USAGE = "invalid usage (run with NCCL_DEBUG=WARN for details)"
INTERNAL_ERROR = "internal error - please report this issue to the NCCL developers"
REMOTE_ERROR = "remote process exited or there was a network error"


class NcclError(Exception):
    """A failed call, with NCCL's text."""


@dataclass(frozen=True)
class Device:
    """One GPU of the communicator."""

    process: Process
    pod: view.Pod
    gpu: Mapping[str, Any]


@dataclass(frozen=True)
class Setup:
    """The parts of the communicator. `devices` are in rank order. Mappings are by pod key."""

    devices: Sequence[Device]
    pods: Sequence[view.Pod]
    variables: Mapping[str, Mapping[str, str]]
    networks: Mapping[str, Network]

    @property
    def first(self) -> Process:
        return self.devices[0].process

    @property
    def environment(self) -> Mapping[str, str]:
        return self.variables[self.pods[0].key]


@dataclass(frozen=True)
class Communicator:
    """Initialized ranks. The first collective creates their channels (since NCCL 2.22)."""

    setup: Setup
    sku: str
    algorithms: Set[str]
    aligned: bool

    def connect(self, log: Log) -> Collective:
        """Connects the ranks, like the first collective. Raises NcclError."""
        setup = self.setup
        _shared_memory(setup, log)
        _channels(setup, log, sharp="CollnetChain" in self.algorithms)
        chosen = _choose_algorithms(setup, self.algorithms, log)
        nvls = bool(chosen & {"NVLS", "NVLSTree"})
        _connected(setup, log, nvls=nvls)
        pause(0.2)
        return Collective(
            sku=self.sku,
            nodes=len(setup.pods),
            gpus_per_node=len(setup.devices) // len(setup.pods),
            transport=SOCKET if any(each.transport == SOCKET for each in setup.networks.values()) else INFINIBAND,
            links=tuple(network.speeds for network in setup.networks.values()),
            sharp=bool(chosen & {"CollnetDirect", "CollnetChain"}),
            nvlink_sharp=nvls,
            aligned=self.aligned,
        )


def initialise(devices: Sequence[Device], variables: Mapping[str, str], known: view.View, log: Log) -> Communicator:
    """Creates a communicator. The environment `variables` override /etc/nccl.conf. Raises NcclError."""
    pods = list({device.pod.key: device.pod for device in devices}.values())
    by_pod = environments(pods, variables)
    networks = {pod.key: nccl_net.choose(known, pod, by_pod[pod.key]) for pod in pods}
    setup = Setup(devices, pods, by_pod, networks)
    log.version(VERSION)
    _bootstrap(setup, log)
    sku = known.node_of(pods[0])["sku"]
    algorithms = _algorithms(setup, view.numbers()["skus"].get(sku, {}))
    _networks(setup, log, sharp="CollnetChain" in algorithms)
    _milestone(setup, "START", log)
    aligned = _topology(setup, known, log)
    _milestone(setup, "COMPLETE", log)
    return Communicator(setup, sku, algorithms, aligned)


def environments(pods: Sequence[view.Pod], variables: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """Returns each pod's NCCL settings, by the pod's key."""
    return {pod.key: {**pod.nccl_files.get("nccl_conf", {}), **variables} for pod in pods}


def _bootstrap(setup: Setup, log: Log) -> None:
    for device in setup.devices:
        name = nccl_net.interface(setup.variables[device.pod.key])
        if name is None:
            pattern = setup.variables[device.pod.key]["NCCL_SOCKET_IFNAME"]
            log.warn(device.process, "bootstrap.cc:140", f"Bootstrap : no socket interface found for {pattern}")
            raise NcclError(SYSTEM_ERROR)
        log.info(device.process, f"Bootstrap: Using {name}:{device.pod.ip}<0>", "INIT,BOOTSTRAP")
        if (wanted := setup.environment.get("NCCL_NET", "")) and wanted not in ("IB", "Socket"):
            log.warn(device.process, "net.cc:1002", f"Error: network {wanted} not found.")
            raise NcclError(INVALID_USAGE)


def _milestone(setup: Setup, what: str, log: Log) -> None:
    for device in setup.devices:
        who = device.process
        ids = f"nranks {len(setup.devices)} cudaDev {who.device} nvmlDev {who.device}"
        bus = device.gpu["pci"].partition(":")[2].replace(":", "").replace(".", "").lstrip("0")
        text = f"ncclCommInitRankConfig comm {_address(device)} rank {who.rank} {ids} busId {bus} commId 0x1"
        log.info(who, f"{text} - Init {what}", "INIT")


def _address(device: Device) -> str:
    return f"{0x55D000000000 + device.process.rank * 0x100000:#x}"


def _connected(setup: Setup, log: Log, *, nvls: bool) -> None:
    gdr = int(all(network.transport == INFINIBAND for network in setup.networks.values()) and len(setup.pods) > 1)
    local = len(setup.devices) // len(setup.pods)
    for device in setup.devices:
        if nvls:
            heads = f"headRank {device.process.device} nHeads {local}"
            log.info(device.process, f"NVLS comm {_address(device)} {heads}", "INIT")
        log.info(device.process, f"Connected all rings, use ring PXN 0 GDR {gdr}", "INIT")


def _topology(setup: Setup, known: view.View, log: Log) -> bool:
    """Returns whether NCCL knows the HCA next to each GPU. In a VM, NCCL needs a topology file for this."""
    aligned = True
    for pod in setup.pods:
        first = next(device.process for device in setup.devices if device.pod is pod)
        path = setup.variables[pod.key].get("NCCL_TOPO_FILE", "")
        if not path:
            aligned = False
            continue
        log.info(first, f"NCCL_TOPO_FILE set by environment to {path}", "ENV")
        found = (pod.nccl_files.get("topologies") or {}).get(path)
        if found is None and pod is known.me:
            found = topology.found_in([path]).get(path)
        if found is None:
            log.warn(first, "graph/xml.cc:439", f"Could not open XML topology file {path} : No such file or directory")
            aligned = False
        elif error := found.get("error"):
            log.warn(first, "graph/xml.cc:188", str(error))
            raise NcclError(INTERNAL_ERROR)
        else:
            node = known.node_of(pod)
            infiniband = [hca["pci"] for hca in node["hcas"] if hca["link_layer"] == "InfiniBand"]
            aligned &= topology.aligned(found, [gpu["pci"] for gpu in node["gpus"]], infiniband)
    return aligned


def _networks(setup: Setup, log: Log, *, sharp: bool) -> None:
    """Logs all networks, even unused networks, in NCCL's order: plugin, InfiniBand, TCP (src/plugin/net.cc)."""
    for device in setup.devices:
        network = setup.networks[device.pod.key]
        variables = setup.variables[device.pod.key]
        oob = f"{nccl_net.interface(variables)}:{device.pod.ip}<0>"
        ordering = "[RO]" if variables.get("NCCL_IB_PCI_RELAXED_ORDERING", "2") != "0" else ""
        names = "".join(_hca_text(index, hca, sharp=sharp) for index, hca in enumerate(network.hcas))
        lines = [f"NET/IB : Using{names} {ordering}; OOB {oob}"]
        if sharp:
            loaded = f"Loaded net plugin {PLUGIN} (v10)", "Loaded collnet plugin SHARP (v10)"
            lines = [f"NET/Plugin: {text}" for text in loaded] + lines
        else:
            lines = ["NET/Plugin: Could not find: libnccl-net.so. ", *lines]
        if network.transport == SOCKET:
            lines.insert(1, "NET/IB : No device found.")
            lines.append(f"NET/Socket : Using [0]{oob}")
        for line in lines:
            log.info(device.process, line, "INIT,NET")
        if network.transport == SOCKET and variables.get("NCCL_NET") == "IB":
            log.warn(device.process, "net.cc:1002", "Error: network IB not found.")
            raise NcclError(INVALID_USAGE)
        name = _network_name(network.transport, sharp=sharp)
        log.info(device.process, f"Initialized NET plugin {name}", "INIT,NET")
        log.info(device.process, f"Assigned NET plugin {name} to comm", "INIT,NET")
        log.info(device.process, f"Using network {name}", "INIT")
    pause(0.1)


def _network_name(transport: str, *, sharp: bool) -> str:
    """Returns a network's name. With SHARP, InfiniBand has the plugin's name."""
    return PLUGIN if sharp and transport == INFINIBAND else transport


def _hca_text(index: int, hca: Mapping[str, Any], *, sharp: bool) -> str:
    layer = "IB" if hca["link_layer"] == "InfiniBand" else "RoCE"
    return f" [{index}]{hca['name']}:1/{layer}" + ("/SHARP" if sharp else "")


def _shared_memory(setup: Setup, log: Log) -> None:
    for device in setup.devices:
        local = sum(other.pod is device.pod for other in setup.devices)
        disabled = setup.variables[device.pod.key].get("NCCL_SHM_DISABLE", "0") == "1"
        if local > 1 and not disabled and local * SHM_PER_GPU > device.pod.facts["shm_bytes"]:
            segment = f"/dev/shm/nccl-{device.process.pid:06d} (size {SHM_PER_GPU})"
            text = f"Error while creating shared memory segment {segment}, error: No space left on device (28)"
            log.warn(device.process, "misc/shmutils.cc:132", text)
            log.info(device.process, "transport/shm.cc:551 -> 2", "INIT")
            raise NcclError(SYSTEM_ERROR)


def _channels(setup: Setup, log: Log, *, sharp: bool) -> None:
    """Logs the connections of the ring and of SHARP's trees. Between nodes, the ring uses all chosen HCAs."""
    for device, peer in zip(setup.devices, [*setup.devices[1:], setup.devices[0]], strict=True):
        if device.pod is not peer.pod:
            _between_nodes(setup, device, peer, log, sharp=sharp)
        elif device is not peer:
            text = f"Channel 00/0 : {_end(device)} -> {_end(peer)} via P2P/CUMEM"
            log.info(device.process, text, "INIT,P2P")
    for device in setup.devices if sharp else ():
        channel = device.process.device
        for way in ("receive", "send"):
            text = f"CollNet {channel:02d}/0 : {device.process.rank} [{way}] via COLLNET/SHARP/{channel}/GDRDMA"
            log.info(device.process, text, "INIT,NET")
    pause(0.2)


def _between_nodes(setup: Setup, device: Device, peer: Device, log: Log, *, sharp: bool) -> None:
    layers = set().union(*(network.link_layers for network in setup.networks.values()))
    transports = {network.transport for network in setup.networks.values()}
    by_ib = transports == {INFINIBAND}
    if by_ib and not device.pod.may_pin_memory:
        text = "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"
        log.warn(device.process, "misc/ibvwrap.cc:278", text)
        raise NcclError(SYSTEM_ERROR)
    for channel in range(max(1, len(setup.networks[device.pod.key].hcas))):
        via = f"NET/{_network_name(INFINIBAND, sharp=sharp)}/{channel}/GDRDMA" if by_ib else "NET/Socket/0"
        edge = f"Channel {channel:02d}/0 : {_end(device)} -> {_end(peer)}"
        log.info(device.process, f"{edge} [send] via {via}", "INIT,NET")
        log.info(peer.process, f"{edge} [receive] via {via}", "INIT,NET")
    if len(transports) > 1 or (by_ib and len(layers) > 1) or (by_ib and layers == {"Ethernet"}):
        text = "Call to ibv_modify_qp failed with 110 Connection timed out"
        log.warn(device.process, "misc/ibvwrap.cc:213", text)
        raise NcclError(SYSTEM_ERROR)
    if by_ib and _partition(setup, device) != _partition(setup, peer):
        pause(1.0)  # NCCL_IB_TIMEOUT times NCCL_IB_RETRY_CNT; on real Azure, tens of seconds
        text = f"NET/IB: Got completion from peer {peer.pod.ip}<0> with status=12 opcode=0 len=0 vendor err 129 (Send)"
        log.warn(device.process, "transport/net_ib.cc:2244", text)
        raise NcclError(REMOTE_ERROR)


def _partition(setup: Setup, device: Device) -> set[str]:
    return {str(hca["pkey"]) for hca in setup.networks[device.pod.key].hcas}


def _end(device: Device) -> str:
    return f"{device.process.rank}[{device.process.device}]"


def _algorithms(setup: Setup, facts: Mapping[str, Any]) -> set[str]:
    """Returns the possible algorithms. CollNet needs SHARP and a setting. NVLS needs an NVSwitch that can reduce."""
    found = {"Ring", "Tree"}
    by_ib = all(network.transport == INFINIBAND for network in setup.networks.values())
    sharp = facts.get("sharp") and by_ib and setup.environment.get("NCCL_COLLNET_ENABLE", "0") == "1"
    if sharp and len(setup.pods) > 1:
        found |= {"CollnetDirect", "CollnetChain"}
    if facts.get("nvlink_sharp") and setup.environment.get("NCCL_NVLS_ENABLE", "2") != "0":
        found |= {"NVLS"} if len(setup.pods) == 1 or sharp else set()
        found |= {"NVLSTree"} if len(setup.pods) > 1 else set()
    return found


def _choose_algorithms(setup: Setup, possible: Set[str], log: Log) -> Set[str]:
    setting = setup.environment.get("NCCL_ALGO", "")
    if not setting:
        return possible
    log.info(setup.first, f"NCCL_ALGO set by environment to {setting}", "ENV")
    excluding = setting.startswith("^")
    names = {name.lower() for name in setting.removeprefix("^").removeprefix("allreduce:").split(",")}
    left = {name for name in possible if (name.lower() in names) != excluding}
    if not left:
        text = "no algorithm/protocol available for function AllReduce with datatype ncclFloat32."
        log.warn(setup.first, "enqueue.cc:1924", f"Error : {text} NCCL_ALGO was set to {setting}.")
        raise NcclError(INVALID_USAGE)
    return left
