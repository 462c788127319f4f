from __future__ import annotations

import pytest

from tests.contract.conformance.conftest import NewStack, Rows

pytestmark = pytest.mark.conformance
SECTION = "Credentials"

PROGRAM = """
import yaml

config = yaml.safe_load(os.environ["KUBECONFIG_TEXT"])
if values["renewed"] == "yes":
    config["clusters"][0]["cluster"]["disable-compression"] = True
    config["clusters"][0]["name"] = config["contexts"][0]["context"]["cluster"] = "renamed"
    config["users"][0]["name"] = config["contexts"][0]["context"]["user"] = "renamed"
text = pulumi.Output.secret(yaml.safe_dump(config))
named = k8s.Provider("named", kubeconfig=text, cluster_identifier="x")
unnamed = k8s.Provider("unnamed", kubeconfig=text)
for name, chosen in (("kept", named), ("replaced", unnamed)):
    k8s.core.v1.ConfigMap(name, metadata={"namespace": values["namespace"], "name": name}, data={"a": "1"},
        opts=pulumi.ResourceOptions(provider=chosen))
"""


def test_another_kubeconfig(new_stack: NewStack, space: str, rows: Rows) -> None:
    stack = new_stack()
    stack.program(PROGRAM, namespace=space, renewed="no")
    up = stack.up()
    assert up.code == 0, up.output
    stack.program(PROGRAM, namespace=space, renewed="yes")
    preview = stack.preview()
    # provider.go, DiffConfig: an unchanged clusterIdentifier replaces nothing.
    rows.is_("a provider with clusterIdentifier", "update", preview.operation("named"))
    rows.is_("its objects", "same", preview.operation("kept"))
    rows.is_("a provider without clusterIdentifier", "replace", preview.operation("unnamed"))
    rows.is_("its objects are replaced", "replace", preview.operation("replaced"))
