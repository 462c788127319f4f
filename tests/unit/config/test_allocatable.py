"""What AKS leaves for pods of a node, by its page on node resource reservations."""

from __future__ import annotations

import pytest

from config.data.allocatable import allocatable, reserved_cpu_millis, reserved_memory_kib
from config.data.skus import sku


@pytest.mark.parametrize(("cores", "millis"), [(1, 60), (2, 100), (4, 140), (8, 180), (16, 260), (32, 420), (64, 740)])
def test_reserved_cpu_is_akss_table(cores: int, millis: int) -> None:
    assert reserved_cpu_millis(cores) == millis


def test_reserved_memory_is_a_quarter_at_most() -> None:
    assert reserved_memory_kib(4 * 1024**2, 250) == 1024**2 + 100 * 1024


def test_a_node_offers_what_linux_and_aks_do_not_keep() -> None:
    left = allocatable(sku("Standard_ND96isr_H100_v5"))
    assert left.cpu_millis == 96_000 - 1060
    assert left.memory_kib == (1900 * 1024 * 63 // 64 - 320 - 20 * 250 - 50 - 100) * 1024
