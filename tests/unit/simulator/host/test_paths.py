"""Where a cluster's things are: each ARM id a folder of its own."""

from __future__ import annotations

import itertools

from simulator.host import paths


def test_each_cluster_has_a_folder_of_its_own() -> None:
    names = ("ai", "dev", "aks", "dev-aks", "ai-dev", "ai-dev-aks")
    folders = [paths.cluster(_id(group, name)) for group, name in itertools.product(names, names)]
    assert len(set(folders)) == len(names) ** 2


def test_ids_are_compared_without_case() -> None:
    assert paths.cluster(_id("ai", "aks")) == paths.cluster(_id("AI", "Aks").upper())


def _id(group: str, name: str) -> str:
    provider = "providers/Microsoft.ContainerService/managedClusters"
    return f"/subscriptions/00000000-0000-4000-8000-000000000001/resourceGroups/{group}/{provider}/{name}"
