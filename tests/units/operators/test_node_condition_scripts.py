"""The checks of node-problem-detector that read the node's log, its counters and nvidia-smi, in all forms of these."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.units.operators.condition_scripts import OK, PROBLEM, log, run

XID = "kernel: NVRM: Xid (PCI:0008:01:00): "
SXID = "kernel: nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): "
REQUIRED = "NVRM: nvCheckOkFailedNoLog: Check failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)"
NAMED = "kernel: NVRM: GPU 0001:00:0a.0:"
GPU = "154 of GPU 0008:01:00: recovery action "
CHANGED = "GPU recovery action changed from 0x0 (None) to"
RESET = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
NONE = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"


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
