"""The training operator on the simulator: the release that is made of its module, and where its manager runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from config.facts.versions import INSTALL, versions
from operators import training_operator as program
from simulator.charts import make_schema
from simulator.operators import training_operator
from simulator.operators._real import pins
from simulator.sandbox.images import image_named

OWN = pins(Path(training_operator.__file__).parent)
PIN = versions().manifests[program.NAME]


def test_the_manager_has_a_network_to_itself_and_the_kubernetes_api() -> None:
    image = image_named(program.NAME)
    assert image.tools == {"/manager": OWN.tools[0]}
    assert image.kubernetes_api


@pytest.mark.simulator
def test_the_release_that_setting_up_makes_is_what_the_program_knows() -> None:
    text = (make_schema.CHARTS / program.NAME / INSTALL).read_text()
    objects = {(each["kind"], each["metadata"]["name"]): each for each in yaml.load_all(text, yaml.CSafeLoader)}
    crds = {name for kind, name in objects if kind == "CustomResourceDefinition"}
    assert crds == {*program.OTHERS, f"{program.KIND}s.kubeflow.org"}
    (manager,) = objects["Deployment", program.NAME]["spec"]["template"]["spec"]["containers"]
    assert manager["image"].startswith(f"ghcr.io/kubeflow/training-v1/{program.NAME}:")
    assert manager["command"] == ["/manager"]
    spaces = {each["metadata"].get("namespace", PIN.namespace) for each in objects.values()}
    hooks = objects["ValidatingWebhookConfiguration", "validator.training-operator.kubeflow.org"]["webhooks"]
    assert {hook["clientConfig"]["service"]["namespace"] for hook in hooks} | spaces == {PIN.namespace}
