"""AppWrapper on the simulator: the release that is made of its module, and where its manager runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from config.facts.scheduling import WRAPPER_CONFIG, WRAPPER_NAMESPACE
from config.facts.versions import INSTALL
from simulator.charts import make_schema
from simulator.operators import appwrapper
from simulator.operators._real import pins
from simulator.sandbox.images import image_named

OWN = pins(Path(appwrapper.__file__).parent)


def test_the_manager_has_a_network_to_itself_and_the_kubernetes_api() -> None:
    image = image_named("appwrapper")
    assert image.tools == {"/manager": OWN.tools[0]}
    assert image.kubernetes_api
    assert image.user != 0


@pytest.mark.simulator
def test_the_release_that_setting_up_makes_is_what_the_program_knows() -> None:
    text = (make_schema.CHARTS / "appwrapper" / INSTALL).read_text()
    objects = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text)}
    assert ("Namespace", WRAPPER_NAMESPACE) in objects
    assert ("ConfigMap", WRAPPER_CONFIG) in objects
    assert ("CustomResourceDefinition", "appwrappers.workload.codeflare.dev") in objects
    (manager,) = objects["Deployment", "appwrapper-controller-manager"]["spec"]["template"]["spec"]["containers"]
    assert manager["image"] == f"quay.io/ibm/appwrapper:v{OWN.version}"
    assert manager["command"] == ["/manager"]
    spaces = {each["metadata"].get("namespace", WRAPPER_NAMESPACE) for each in objects.values()}
    assert spaces == {WRAPPER_NAMESPACE}
