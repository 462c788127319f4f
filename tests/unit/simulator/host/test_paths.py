from __future__ import annotations

import itertools

from simulator.host import paths


def test_each_cluster_has_its_own_folder() -> None:
    names = ("ai", "dev", "aks", "dev-aks", "ai-dev", "ai-dev-aks")
    folders = [paths.cluster(_id(group, name)) for group, name in itertools.product(names, names)]
    assert len(set(folders)) == len(names) ** 2


def test_ignores_the_case_of_ids() -> None:
    assert paths.cluster(_id("ai", "aks")) == paths.cluster(_id("AI", "Aks").upper())


def _id(group: str, name: str) -> str:
    provider = "providers/Microsoft.ContainerService/managedClusters"
    return f"/subscriptions/00000000-0000-4000-8000-000000000001/resourceGroups/{group}/{provider}/{name}"
