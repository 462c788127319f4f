from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from config.data import skus
from config.data.content_tags import IMAGES
from tests.support.case_files import case_table

SCRIPTS = IMAGES / "node-problem-detector"
OK, PROBLEM, UNKNOWN = 0, 1, 2
LINE = "{:%Y-%m-%dT%H:%M:%S.000000+00:00} n "


def run(script: str, *arguments: str, scripts: Path = SCRIPTS, **variables: str) -> tuple[int, str]:
    environment = {"PATH": os.environ["PATH"], **variables}
    command = ["bash", str(scripts / script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert not done.stderr
    return done.returncode, done.stdout.strip()


def log(folder: Path, *lines: tuple[float, str], style: str = LINE) -> Path:
    """Lines' ages are in hours."""
    now = datetime.now(UTC)
    text = "".join(f"{style.format(now - timedelta(hours=hours))}{line}\n" for hours, line in lines)
    (folder / "syslog").write_text(text)
    return folder


class Smi:
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
        (links("NVIDIA H200", []) + LOST, UNKNOWN, "nvidia-smi does not report all GPUs: Unable to determine"),
        ("nothing\n", UNKNOWN, "nvidia-smi reports no NVLink: nothing"),
    ],
)  # fmt: skip
def test_ignores_links_that_the_product_never_uses(tmp_path: Path, output: str, code: int, words: str) -> None:
    found, message = Smi(tmp_path).check("gpu-nvlink.sh", output=output)
    assert (found, message[: len(words)]) == (code, words)


def test_the_scripts_unused_links_equal_those_of_the_catalogue() -> None:
    lines = (SCRIPTS / "nvlinks.txt").read_text("utf-8").splitlines()
    accepted = dict(line.split("\t") for line in lines if not line.startswith("#"))
    sizes = skus.catalogue().values()
    unused = {sku.gpu_product: str(len(sku.gpu_nvlinks_unused)) for sku in sizes if sku.gpu_nvlinks_unused}
    assert accepted == unused


@pytest.mark.parametrize("second", [LOST, f"GPU 1: {LOST}", "GPU 1: Unknown Error\n"])
def test_does_not_count_a_lost_gpu(tmp_path: Path, second: str) -> None:
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


XID = "kernel: NVRM: Xid (PCI:0008:01:00): "
GPU = "154 of GPU 0008:01:00: recovery action "


@case_table(__file__, "forms", file="xids")
@pytest.mark.parametrize(
    "style",
    ["{:%Y-%m-%dT%H:%M:%S.000000+00:00} n ", "{:%Y-%m-%dT%H:%M:%SZ} n ", "{:%b %e %H:%M:%S} n ", "{:%b %e %T.5} n "],
)
def test_finds_xids_in_all_formats(tmp_path: Path, lines: list[str], critical: str, warning: str, style: str) -> None:
    node = log(tmp_path, *((0.2, line) for line in lines), style=style)
    for severity, words in (("critical", critical), ("warning", warning)):
        code, message = run("gpu-xid.sh", severity, KERNEL_LOGS=str(node), TZ="UTC")
        expected = f"Xid {words}" if words else f"no Xid that is {severity}"
        assert (code, message[: len(expected)]) == (PROBLEM if words else OK, expected)


@case_table(__file__, "RFC 5424", file="xids")
def test_finds_xids_in_a_log_of_rfc_5424(
    tmp_path: Path, style: str, lines: list[str], critical: str, warning: str
) -> None:
    style = style.replace("{}", "{:%Y-%m-%dT%H:%M:%S.000000+00:00}")
    test_finds_xids_in_all_formats(tmp_path, lines, critical, warning, style)


def test_old_xids_count_if_they_are_critical_or_a_recovery_action_is_pending(tmp_path: Path) -> None:
    drained = "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
    node = log(tmp_path, (9, f"{XID}149, NETIR_LINK_EVT Fatal XC0"), (8, f"{XID}154, {drained}"), (7, f"{XID}31, mmu"))
    assert run("gpu-xid.sh", "critical", KERNEL_LOGS=str(node)) == (PROBLEM, "Xid 149 of GPU 0008:01:00")
    found = run("gpu-xid.sh", "warning", KERNEL_LOGS=str(node))
    assert found == (PROBLEM, "Xid 154 of GPU 0008:01:00: recovery action 4 (Drain and Reset)")


def test_finds_a_critical_xid_among_many_others(tmp_path: Path) -> None:
    node = log(tmp_path, (2, f"{XID}79, GPU has fallen off the bus."), *((1.5, f"{XID}31, {n}") for n in range(900)))
    assert run("gpu-xid.sh", "critical", KERNEL_LOGS=str(node)) == (PROBLEM, "Xid 79 of GPU 0008:01:00")


class Links:
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
        memory = self.folder / "infiniband-flaps"
        words = [line.split() for line in memory.read_text().splitlines()]
        aged = [
            [*line[:2], str(int(line[2]) - hours * 3600), *line[3:]] if line[0] == "grew" else line for line in words
        ]
        memory.write_text("".join(f"{' '.join(line)}\n" for line in aged))


@case_table(__file__, "counters")
def test_a_growing_counter_is_a_lost_link(tmp_path: Path, looks: list[str], problem: bool) -> None:
    links = Links(tmp_path)
    found = [links.look({"mlx5_ib0": "0", "mlx5_ib1": count}) for count in looks][-1]
    what = "links that were lost 2 times or more within 6 hours: mlx5_ib1"
    assert found == ((PROBLEM, what) if problem else (OK, "no link was lost 2 times within 6 hours"))


def test_old_losses_ethernet_and_single_losses_are_not_flapping(tmp_path: Path) -> None:
    links = Links(tmp_path)
    links.look({"mlx5_0": "0", "mlx5_1": "0"})
    assert links.look({"mlx5_0": "1", "mlx5_1": "1"})[0] == OK
    links.later(7)
    assert links.look({"mlx5_0": "2", "mlx5_1": "1"})[0] == OK
    assert links.look({"mlx5_0": "3", "mlx5_1": "1"})[0] == PROBLEM
    ethernet = Links(tmp_path / "ethernet")
    ethernet.folder.mkdir()
    assert [ethernet.look({"mlx5_8": count}, layer="Ethernet")[0] for count in ("0", "9")] == [OK, OK]


def test_ignores_lost_carriers_of_other_interfaces(tmp_path: Path) -> None:
    links = ("veth1a", "azv0d", "eth0", "enP30832p0s0") * 4
    assert Links(tmp_path).look({}, *((1, f"systemd-networkd[7]: {link}: Lost carrier") for link in links))[0] == OK


@case_table(__file__, "ports")
def test_a_port_that_the_kernel_logs_as_down_is_a_lost_link(
    tmp_path: Path, link: str, count: str, layer: str, problem: bool
) -> None:
    node = Links(tmp_path)
    node.look({"mlx5_ib1": "0"}, layer=layer)
    down = (1.0, f"kernel: [  9.1] mlx5_core 0101:00:00.0 {link}: Port: 1 Link DOWN")
    code, message = node.look({"mlx5_ib1": count}, *[down] * (1 if count == "1" else 2), layer=layer)
    assert (code, link in message) == ((PROBLEM, True) if problem else (OK, False))


@case_table(__file__, "words")
def test_finds_lost_links_in_the_messages_of_each_program(tmp_path: Path, lines: list[str], problem: bool) -> None:
    style = "<30>1 {:%Y-%m-%dT%H:%M:%SZ} n " if " - - " in lines[0] else LINE
    assert Links(tmp_path).look({}, *((1, line) for line in lines), style=style)[0] == (PROBLEM if problem else OK)
