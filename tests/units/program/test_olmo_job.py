"""OLMo's Jobs, declared by the whole program."""

from __future__ import annotations

from tests.support import golden
from tests.support.mocks import program

IMAGE = "registry.example.com/olmo:1"


def test_the_config_of_a_custom_image_is_checked_before_the_training_is_created() -> None:
    stack = golden.keys("two-accounts")
    options = stack["workloadOptions"]["olmo"]
    custom = program(stack | {"workloadOptions": {"olmo": {**options, "image": IMAGE}}})
    check = custom.one(":batch/v1:Job", "olmo-config")
    assert check.inputs["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
    assert f"{check.type} {check.name}" in custom.one(":batch/v1:Job", "olmo").dependencies
    assert program(stack).names(":batch/v1:Job") == ["olmo"]
