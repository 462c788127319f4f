"""The checks of node-problem-detector that read the node's log, its counters and nvidia-smi, in all forms of these."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from config.facts import skus
from config.facts.content_tags import IMAGES

SCRIPTS = IMAGES / "node-problem-detector"
OK, PROBLEM, UNKNOWN = 0, 1, 2
LINE = "{:%Y-%m-%dT%H:%M:%S.000000+00:00} n "
XID = "kernel: NVRM: Xid (PCI:0008:01:00): "
SXID = "kernel: nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): "
REQUIRED = "NVRM: nvCheckOkFailedNoLog: Check failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)"
NAMED = "kernel: NVRM: GPU 0001:00:0a.0:"
GPU = "154 of GPU 0008:01:00: recovery action "
CHANGED = "GPU recovery action changed from 0x0 (None) to"
RESET = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
NONE = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"


def run(script: str, *arguments: str, scripts: Path = SCRIPTS, **variables: str) -> tuple[int, str]:
    environment = {"PATH": os.environ["PATH"], **variables}
    command = ["bash", str(scripts / script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert not done.stderr
    return done.returncode, done.stdout.strip()


def log(folder: Path, *lines: tuple[float, str], style: str = LINE) -> Path:
    """A node's log, of lines so many hours old."""
    now = datetime.now(UTC)
    text = "".join(f"{style.format(now - timedelta(hours=hours))}{line}\n" for hours, line in lines)
    (folder / "syslog").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("lines", "critical", "warning"),
    [
        # What the driver says that a GPU needs holds until it says another, whatever words it has for it.
        ([f"{XID}154, {RESET}"], f"{GPU}1 (GPU Reset Required)", ""),
        ([f"{XID}154, {CHANGED} 0x1 (PF FLR)"], f"{GPU}1 (PF FLR)", ""),
        ([f"{XID}154, {RESET}", f"{XID}154, {NONE}"], "", ""),
        ([f"{XID}154, {RESET}", f"{XID}154, {NONE}", f"{XID}154, {RESET}"], f"{GPU}1", ""),
        ([f"{XID}154, {RESET}", f"{XID.replace('0008', '0009')}154, {NONE}"], GPU, ""),
        ([f"{XID}154, {CHANGED} 0x5 (Bus Reset)"], GPU, ""),
        ([f"{XID}154, {CHANGED} 0x3 (Drain P2P)"], "", GPU),
        ([f"{XID}154, {CHANGED} 0x5 (Recover IMEX Domain)"], "", GPU),
        ([f"{XID}154, the words of a driver to come"], f"{GPU}unknown", ""),
        (["kernel: NVRM: GPU0 Reset required [NV_ERR_RESET_REQUIRED]"], "154 of GPU unknown", ""),
        # Only a reset of the same GPU ends that it needs one; of which GPU is not known, only a boot does.
        ([f"kernel: {REQUIRED}", f"{XID}154, {NONE}"], "154 of GPU unknown", ""),
        ([f"kernel: {REQUIRED}", "kernel: Linux version 6.8"], "", ""),
        ([f"{NAMED} GPU requires reset", f"{XID}154, {NONE}"], "154 of GPU 0001:00:0a", ""),
        ([f"{NAMED} GPU requires reset", f"{XID.replace('0008:01:00', '0001:00:0A')}154, {NONE}"], "", ""),
        ([f"{NAMED} GPU requires reset", f"{XID.replace('0008:01', '00000008:01')}154, {NONE}"], "154 of GPU 0001", ""),
        ([f"{XID}154, {CHANGED} 0x4 (Drain and Reset)", f"kernel: {REQUIRED}"], "154 of GPU unknown", f"{GPU}4"),
        # Errors of NVLink by their word, and what they cause by their cause.
        ([f"{XID}145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0)"], "", "145 of GPU 0008:01:00"),
        ([f"{XID}147, TREX_ERR Fatal XC0 i0 Link 13 (0x0)"], "147 of GPU 0008:01:00", ""),
        ([f"{XID}150, MSE_ERR in other words"], "150 of GPU 0008:01:00", ""),
        ([f"{XID}45, pid=7, name=python3, Ch 00000001 caused by previous Xid 149"], "", "149 of GPU 0008:01:00"),
        ([f"{XID}45, pid=7, name=python3, Ch 00000001 caused by previous Xid 48"], "48 of GPU 0008:01:00", ""),
        ([f"{XID}45, pid=7, name=python3, Ch 00000001"], "", "45 of GPU 0008:01:00"),
        # Other forms: partitions, old drivers, contained and uncontained errors, rows.
        (["kernel: NVRM: Xid (PCI:0000:a8:00 GPU-I:02): 95, pid=7, uncontained"], "95 of GPU 0000:a8:00", ""),
        (["kernel: NVRM: Xid (0000:03:00): 79, GPU has fallen off the bus."], "79 of GPU 0000:03:00", ""),
        (["kernel: NVRM: Xid (PCI:00000000:03:00.0): 079, lost"], "79 of GPU 0000:03:00", ""),
        (["kernel: NVRM: GPU at 0000:03:00.0 has fallen off the bus."], "79 of GPU 0000:03:00", ""),
        (["kernel: NVRM: The NVIDIA GPU 0000:b3:00.0", "kernel: NVRM: fallen off the bus and is"], "79 of GPU", ""),
        (["kernel: NVRM: x failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F)"], "79 of GPU unknown", ""),
        (["kernel: NVRM: GPU6 _kgspBootGspRm: (the GPU is in a bad state and may need to be reset)"], "154 of", ""),
        (["kernel: NVRM: GPU 0000:0a:00.0: RmInitAdapter failed! (0x24:0x72:1568)"], "", "without number (the driver"),
        (["kernel: NVRM: Assertion failed: x [NV_ERR_GPU_IN_FULLCHIP_RESET] (0x10)"], "", "without number"),
        ([f"{XID}94, pid=7, name=python3, contained"], "", "94 of GPU 0008:01:00"),
        ([f"{XID}63, Row Remapper: New row marked for remapping"], "", "63 of GPU 0008:01:00"),
        ([f"{XID}64, Row Remapper: Remapping row has failed"], "64 of GPU 0008:01:00", ""),
        # Without the tag, as dmesg prints it, and repeated.
        (["[   12.5] NVRM: Xid (PCI:0008:01:00): 79, lost"], "79 of GPU 0008:01:00", ""),
        (["kernel: message repeated 2 times: [ NVRM: Xid (PCI:0008:01:00): 79, lost]"], "79 of GPU 0008:01:00", ""),
        # What a job prints is no error of the driver.
        (["python3[1]: NVRM: Xid (PCI:0008:01:00): 79, lost", "x: [rank0] NVRM: GPU lost from the bus"], "", ""),
        ([f"python3[1]: {XID}79, lost", f"x[7]: {SXID}24007, Fatal, x"], "", ""),
        (["x: NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0"], "", ""),
        # NVSwitches.
        ([f"{SXID}24007, Fatal, Link 30 sourcetrack timeout error (First)"], "S24007 of NVSwitch 0000:c1:00", ""),
        ([f"{SXID}20009, Non-fatal, Link 28 RX Short Error Rate"], "", "S20009 of NVSwitch 0000:c1:00"),
        ([f"{SXID}24007, Severity 1 Engine instance 30", f"{SXID}24007, Data {{0x0, 0x1}}"], "", ""),
        (["nv-fabricmanager[8]: detected NVSwitch fatal error 20034 on fid:0 on NVSwitch pci bus id 00000000:86:00.0"],
         "S20034 of NVSwitch 00000000:86:00", ""),
        (["nv-fabricmanager[8]: detected NVSwitch non-fatal error 12028 on fid 0 on pci bus id 00000000:86:00.0"],
         "", "S12028 of NVSwitch 00000000:86:00"),
        # What was before the boot is over, however the kernel's first line begins.
        ([f"{XID}79, lost", f"{SXID}24007, Fatal, x", "kernel: [    0.000000] Linux version 6.8"], "", ""),
        ([f"{XID}79, lost", "kernel:[    0.000000] Linux version 6.8"], "", ""),
        ([f"{XID}79, lost", "kernel: [    0.000000][    T0] Linux version 6.11"], "", ""),
        ([f"{XID}79, lost", 'x[9]: msg="kernel: Linux version 6.8"'], "79 of GPU 0008:01:00", ""),
        ([f"{XID}79, lost", "sudo: root : COMMAND=/bin/grep kernel: Linux version x"], "79 of GPU 0008:01:00", ""),
        ([f"{XID}79, lost", "systemd[1]: hello Linux version 6.8"], "79 of GPU 0008:01:00", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "style",
    ["{:%Y-%m-%dT%H:%M:%S.000000+00:00} n ", "{:%Y-%m-%dT%H:%M:%SZ} n ", "{:%b %e %H:%M:%S} n ", "{:%b %e %T.5} n "],
)
def test_xids_in_all_their_forms(tmp_path: Path, lines: list[str], critical: str, warning: str, style: str) -> None:
    node = log(tmp_path, *((0.2, line) for line in lines), style=style)
    for severity, words in (("critical", critical), ("warning", warning)):
        code, message = run("gpu-xid.sh", severity, KERNEL_LOGS=str(node), TZ="UTC")
        expected = f"Xid {words}" if words else f"no Xid that is {severity}"
        assert (code, message[: len(expected)]) == (PROBLEM if words else OK, expected)


@pytest.mark.parametrize(
    ("style", "lines", "critical", "warning"),
    [
        ("<4>1 {} n kernel - - - ", ["NVRM: Xid (PCI:0008:01:00): 79, lost"], "79 of GPU 0008:01:00", ""),
        ("<4>1 {} n kernel - - [x y] ", ["[  9.1] NVRM: Xid (PCI:0008:01:00): 31, mmu"], "", "31 of GPU 0008:01:00"),
        ("<4>1 {} n kernel - - - ", ["NVRM: Xid (PCI:0008:01:00): 79, lost", "[ 0.0] Linux version 6.8"], "", ""),
        ("<4>1 {} n kernel 0 - - ", ["NVRM: Xid (PCI:0008:01:00): 79, lost"], "79 of GPU 0008:01:00", ""),
        ("{} n ", [XID.replace("kernel", "kernel[0]") + "79, lost"], "79 of GPU 0008:01:00", ""),
        ("<4>{} n ", [f"{XID}31, mmu"], "", "31 of GPU 0008:01:00"),
        ("<14>1 {} n python3 7 - - ", ["NVRM: Xid (PCI:0008:01:00): 79, lost", f"{XID}79, lost"], "", ""),
        ("<14>1 {} n python3 - - [x@1 y] ", ["NVRM: Xid (PCI:0008:01:00): 79, lost", f"{XID}79, lost"], "", ""),
    ],
)  # fmt: skip
def test_xids_in_a_log_of_rfc_5424(tmp_path: Path, style: str, lines: list[str], critical: str, warning: str) -> None:
    style = style.replace("{}", "{:%Y-%m-%dT%H:%M:%S.000000+00:00}")
    test_xids_in_all_their_forms(tmp_path, lines, critical, warning, style)


def test_old_errors_hold_if_they_are_critical_or_the_driver_has_not_taken_them_back(tmp_path: Path) -> None:
    drained = "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
    node = log(tmp_path, (9, f"{XID}149, NETIR_LINK_EVT Fatal XC0"), (8, f"{XID}154, {drained}"), (7, f"{XID}31, mmu"))
    assert run("gpu-xid.sh", "critical", KERNEL_LOGS=str(node)) == (PROBLEM, "Xid 149 of GPU 0008:01:00")
    found = run("gpu-xid.sh", "warning", KERNEL_LOGS=str(node))
    assert found == (PROBLEM, "Xid 154 of GPU 0008:01:00: recovery action 4 (Drain and Reset)")


def test_many_errors_of_jobs_hide_no_critical_one(tmp_path: Path) -> None:
    node = log(tmp_path, (2, f"{XID}79, GPU has fallen off the bus."), *((1.5, f"{XID}31, {n}") for n in range(900)))
    assert run("gpu-xid.sh", "critical", KERNEL_LOGS=str(node)) == (PROBLEM, "Xid 79 of GPU 0008:01:00")


class Links:
    """A node's ports and its log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def look(
        self, counters: Mapping[str, str], *lines: tuple[float, str], layer: str = "InfiniBand", style: str = LINE
    ) -> tuple[int, str]:
        shutil.rmtree(self.folder / "sys", ignore_errors=True)
        for device, count in counters.items():
            port = self.folder / "sys/class/infiniband" / device / "ports/1"
            (port / "counters").mkdir(parents=True)
            (port / "link_layer").write_text(f"{layer}\n")
            (port / "counters/link_downed").write_text(f"{count}\n")
        node, sysfs = log(self.folder, (9, "kernel: Linux version 6"), *lines, style=style), self.folder / "sys"
        return run("infiniband-flaps.sh", "2", "6", KERNEL_LOGS=str(node), SYSFS=str(sysfs), TMPDIR=str(self.folder))

    def later(self, hours: int) -> None:
        """What it remembers is so much older."""
        memory = self.folder / "infiniband-flaps"
        words = [line.split() for line in memory.read_text().splitlines()]
        aged = [
            [*line[:2], str(int(line[2]) - hours * 3600), *line[3:]] if line[0] == "grew" else line for line in words
        ]
        memory.write_text("".join(f"{' '.join(line)}\n" for line in aged))


@pytest.mark.parametrize(
    ("looks", "problem"),
    [
        (["7"], False),  # the first look only notes
        (["7", "8"], False),
        (["7", "9"], True),
        (["7", "8", "8", "9"], True),
        (["7", "1"], False),  # the driver was loaded again
        (["7", "0", "1", "2"], True),
        (["7", "N/A", "9"], False),  # a function that does not count
        (["0", "0", "0"], False),
    ],
)
def test_a_counter_that_grows_is_a_lost_link(tmp_path: Path, looks: list[str], problem: bool) -> None:
    links = Links(tmp_path)
    found = [links.look({"mlx5_ib0": "0", "mlx5_ib1": count}) for count in looks][-1]
    what = "links that were lost 2 times or more within 6 hours: mlx5_ib1"
    assert found == ((PROBLEM, what) if problem else (OK, "no link was lost 2 times within 6 hours"))


def test_what_grew_long_ago_or_by_ethernet_or_on_two_links_is_no_flapping(tmp_path: Path) -> None:
    links = Links(tmp_path)
    links.look({"mlx5_0": "0", "mlx5_1": "0"})
    assert links.look({"mlx5_0": "1", "mlx5_1": "1"})[0] == OK
    links.later(7)
    assert links.look({"mlx5_0": "2", "mlx5_1": "1"})[0] == OK
    assert links.look({"mlx5_0": "3", "mlx5_1": "1"})[0] == PROBLEM
    ethernet = Links(tmp_path / "ethernet")
    ethernet.folder.mkdir()
    assert [ethernet.look({"mlx5_8": count}, layer="Ethernet")[0] for count in ("0", "9")] == [OK, OK]


def test_lost_carriers_of_pods_are_no_infiniband(tmp_path: Path) -> None:
    links = ("veth1a", "azv0d", "eth0", "enP30832p0s0") * 4
    assert Links(tmp_path).look({}, *((1, f"systemd-networkd[7]: {link}: Lost carrier") for link in links))[0] == OK


@pytest.mark.parametrize(
    ("link", "count", "layer", "problem"),
    [
        ("mlx5_ib1", "0", "InfiniBand", True),  # a function that does not count
        ("mlx5_ib1", "1", "InfiniBand", False),  # one loss, counted and logged
        ("mlx5_9", "0", "InfiniBand", True),  # not in sysfs
        ("mlx5_ib1", "0", "Ethernet", False),
        ("rocep1s0f1", "0", "InfiniBand", False),
        ("mlx5_an0", "0", "InfiniBand", False),
    ],
)
def test_ports_that_the_kernel_logs_as_down_are_lost_links(
    tmp_path: Path, link: str, count: str, layer: str, problem: bool
) -> None:
    node = Links(tmp_path)
    node.look({"mlx5_ib1": "0"}, layer=layer)
    down = (1.0, f"kernel: [  9.1] mlx5_core 0101:00:00.0 {link}: Port: 1 Link DOWN")
    code, message = node.look({"mlx5_ib1": count}, *[down] * (1 if count == "1" else 2), layer=layer)
    assert (code, link in message) == ((PROBLEM, True) if problem else (OK, False))


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["NetworkManager[9]: <info>  [1732616400.1] device (ib0): carrier: link disconnected"] * 2, True),
        (["kernel: mlx5_core 0101:00:00.0 ib0: Link down"] * 2, True),
        # One loss in the words of two programs.
        (["systemd-networkd[7]: ib0: Lost carrier", "kernel: mlx5_core 0101:00:00.0 ib0: Link down"], False),
        (["systemd-networkd 7 - - ib0: Lost carrier"] * 2, True),
        (["systemd-networkd[7]: message repeated 2 times: [ ib0: Lost carrier]"], True),
        (["kernel: mlx5_core 0000:01:00.1 enp1s0f1np1: Link down"] * 2, False),
    ],
)
def test_lost_links_in_the_words_of_each_program(tmp_path: Path, lines: list[str], problem: bool) -> None:
    style = "<30>1 {:%Y-%m-%dT%H:%M:%SZ} n " if " - - " in lines[0] else LINE
    assert Links(tmp_path).look({}, *((1, line) for line in lines), style=style)[0] == (PROBLEM if problem else OK)


class Smi:
    """The scripts, with an nvidia-smi that prints a text."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder / "checks", folder / "bin"
        shutil.copytree(SCRIPTS, self.folder)
        root = folder / "driver"
        (root / "usr/bin").mkdir(parents=True)
        (root / "usr/bin/nvidia-smi").touch()
        library = self.folder / "lib.sh"
        library.write_text(library.read_text().replace("DRIVER_ROOT=/run/nvidia/driver", f"DRIVER_ROOT={root}"))
        self.bin.mkdir()

    def check(self, script: str, *arguments: str, output: str) -> tuple[int, str]:
        (self.bin / "output").write_text(output)
        (self.bin / "chroot").write_text(f"#!/bin/bash\ncat {self.bin}/output\n")
        (self.bin / "chroot").chmod(0o755)
        path = f"{self.bin}:{os.environ['PATH']}"
        return run(script, *arguments, scripts=self.folder, PATH=path, TMPDIR=str(self.bin))


LOST = "Unable to determine the device handle for GPU1: 0002:00:00.0: GPU is lost.\n"
UNUSED = [4, 5, 10, 11, 16, 17]


def links(product: str, *inactive: list[int], total: int = 18) -> str:
    lines = []
    for gpu, off in enumerate(inactive):
        lines.append(f"GPU {gpu}: {product} (UUID: GPU-0)")
        lines += [f"\t Link {link}: {'<inactive>' if link in off else '26.562 GB/s'}" for link in range(total)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("output", "code", "words"),
    [
        (links("NVIDIA H100 NVL", UNUSED, UNUSED), OK, "all NVLinks are active"),
        (links("NVIDIA H100 NVL", UNUSED, [0, *UNUSED]), PROBLEM, "inactive NVLinks: 0 of GPU 1,4 of GPU 1"),
        (links("NVIDIA H100 NVL", list(range(18)), UNUSED), PROBLEM, "inactive NVLinks: 0 of GPU 0"),
        (links("NVIDIA H100 80GB HBM3", [], [4]), PROBLEM, "inactive NVLinks: 4 of GPU 1"),
        (links("NVIDIA H200", [], []), OK, "all NVLinks are active"),
        (links("NVIDIA H200", []) + "GPU 1: NVIDIA H200 (UUID: GPU-1)\n", PROBLEM, "inactive NVLinks: all of GPU 1"),
        (links("NVIDIA H100 NVL", UNUSED) + "GPU 1: NVIDIA H100 NVL\nall links are inactive\n", PROBLEM, "inactive NV"),
        (links("NVIDIA H200", [], []).replace("26.562 GB/s", "0.000 GB/s"), PROBLEM, "inactive NVLinks: 0 of GPU 0"),
        (links("NVIDIA H200", []) + "GPU 1: NVIDIA H200\nGPU requires reset\n", PROBLEM, "GPU 1 requires a reset"),
        (links("NVIDIA H200", []) + LOST, UNKNOWN, "nvidia-smi does not tell of all GPUs: Unable to determine"),
        ("nothing\n", UNKNOWN, "nvidia-smi tells of no NVLink: nothing"),
    ],
)  # fmt: skip
def test_links_that_a_product_never_uses_are_no_fault(tmp_path: Path, output: str, code: int, words: str) -> None:
    found, message = Smi(tmp_path).check("gpu-nvlink.sh", output=output)
    assert (found, message[: len(words)]) == (code, words)


def test_the_links_that_the_script_accepts_are_those_of_the_catalogue() -> None:
    lines = (SCRIPTS / "nvlinks.txt").read_text("utf-8").splitlines()
    accepted = dict(line.split("\t") for line in lines if not line.startswith("#"))
    sizes = skus.catalogue().values()
    unused = {sku.gpu_product: str(len(sku.gpu_nvlinks_unused)) for sku in sizes if sku.gpu_nvlinks_unused}
    assert accepted == unused


@pytest.mark.parametrize("second", [LOST, f"GPU 1: {LOST}", "GPU 1: Unknown Error\n"])
def test_a_gpu_that_is_lost_is_not_counted(tmp_path: Path, second: str) -> None:
    output = f"GPU 0: NVIDIA H200 (UUID: GPU-1)\n{second}"
    assert Smi(tmp_path).check("gpu-count.sh", "2", output=output)[0] == PROBLEM


@pytest.mark.parametrize(
    ("script", "arguments", "output"),
    [
        ("gpu-memory.sh", ["errors"], "0, [GPU requires reset]\n"),
        ("gpu-memory.sh", ["remapping"], "00000000:01:00.0, [GPU requires reset]\n"),
        ("gpu-count.sh", ["1"], "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 0000:01:00.0: GPU requires reset\n"),
    ],
)
def test_a_gpu_that_requires_a_reset_is_a_problem(
    tmp_path: Path, script: str, arguments: list[str], output: str
) -> None:
    code, message = Smi(tmp_path).check(script, *arguments, output=output)
    assert (code, "reset" in message) == (PROBLEM, True), message
