"""The blob CSI driver: AKS's add-on, or the chart, or nothing; never both."""

from __future__ import annotations

from typing import Any

import pytest

from operators import blob_csi_driver
from tests.support.mocks import Recorder, program

H100 = "Standard_ND96isr_H100_v5"


def declared(driver: str, **containers: Any) -> Recorder:
    return program({"vmSku": H100, "storage": {"driver": driver, "containers": containers}})


def drivers(recorder: Recorder) -> set[str]:
    profile = recorder.one(":ManagedCluster").inputs["storageProfile"]
    addon = {"addon"} if profile["blobCSIDriver"]["enabled"] else set()
    return addon | ({"chart"} if blob_csi_driver.NAME in recorder.names("helm.sh/v3:Release") else set())


@pytest.mark.parametrize("driver", ["addon", "chart"])
def test_containers_have_the_one_driver_that_is_chosen(driver: str) -> None:
    assert drivers(declared(driver, data={})) == {driver}


def test_none_lies_between_the_chart_and_the_add_on() -> None:
    assert drivers(declared("none", data={})) == set()


@pytest.mark.parametrize("driver", ["addon", "chart"])
def test_without_containers_there_is_none(driver: str) -> None:
    recorder = declared(driver)
    assert drivers(recorder) == set()
    assert recorder.names(":StorageAccount") == []


def test_the_chart_goes_where_its_objects_are_looked_for() -> None:
    release = declared("chart", data={}).one("helm.sh/v3:Release", blob_csi_driver.NAME)
    assert release.inputs["namespace"] == "kube-system"


def test_every_node_mounts_and_one_controller_is_enough() -> None:
    values = blob_csi_driver.values()
    assert values["node"]["tolerations"] == [{"operator": "Exists"}]
    assert values["controller"]["replicas"] == 1  # it has the host's ports: two need two system nodes
