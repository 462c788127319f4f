"""Lost links of InfiniBand, by the node-problem-detector's script: counters of ports, and the node's log."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.support.case_files import case_table
from tests.unit.operators.condition_scripts import LINE, OK, PROBLEM, log, run


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


@case_table(__file__, "counters")
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


@case_table(__file__, "ports")
def test_ports_that_the_kernel_logs_as_down_are_lost_links(
    tmp_path: Path, link: str, count: str, layer: str, problem: bool
) -> None:
    node = Links(tmp_path)
    node.look({"mlx5_ib1": "0"}, layer=layer)
    down = (1.0, f"kernel: [  9.1] mlx5_core 0101:00:00.0 {link}: Port: 1 Link DOWN")
    code, message = node.look({"mlx5_ib1": count}, *[down] * (1 if count == "1" else 2), layer=layer)
    assert (code, link in message) == ((PROBLEM, True) if problem else (OK, False))


@case_table(__file__, "words")
def test_lost_links_in_the_words_of_each_program(tmp_path: Path, lines: list[str], problem: bool) -> None:
    style = "<30>1 {:%Y-%m-%dT%H:%M:%SZ} n " if " - - " in lines[0] else LINE
    assert Links(tmp_path).look({}, *((1, line) for line in lines), style=style)[0] == (PROBLEM if problem else OK)
