from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import language_pb2

from simulator.plugins.language_host.definitions import Unreadable, read
from simulator.plugins.language_host.program import program
from tests.unit.simulator.plugins.language_host.conftest import Deployment

CASES = Path(__file__).with_name("cases")
POD, AS_PYTHON = (CASES.joinpath(name).read_text("utf-8") for name in ("imported.pp", "imported.txt"))


def test_converts_names_of_properties_but_not_keys_of_maps() -> None:
    assert program(read(POD)) == AS_PYTHON


def argument(text: str, kind: str = "kubernetes:core/v1:Secret", attribute: str = "stringData") -> ast.expr:
    """Returns the argument of a resource with one attribute (PCL)."""
    made = ast.parse(program(read(f'resource a "{kind}" {{\n {attribute} = {text}\n}}'))).body[-1]
    assert isinstance(made, ast.Assign)
    assert isinstance(made.value, ast.Call)
    return made.value.keywords[0].value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{ "a" = "say \"hi\" to $${name}, 100%%{x}\n\\" }', {"a": 'say "hi" to ${name}, 100%{x}\n\\'}),
        (r'{ "größe" = "\u00fc" }', {"größe": "ü"}),
        ("{ a = null, b = -1.5, c = 20, d = 1e3 }", {"a": None, "b": -1.5, "c": 20, "d": 1000.0}),
        ("{}", {}),
    ],
)
def test_keeps_values(text: str, value: Any) -> None:
    assert ast.literal_eval(argument(text)) == value


def test_converts_secrets_and_references() -> None:
    assert ast.unparse(argument('{ "key" = secret("x"), "of" = my-group.id }')) == (
        "{'key': pulumi.Output.secret('x'), 'of': my_group.id}"
    )


def test_renames_a_property_that_collides_with_a_parameter() -> None:
    text = program(read('resource a "azure-native:containerservice:ManagedCluster" { resourceName = "aks" }'))
    assert 'azure_native.containerservice.ManagedCluster("a",\n    resource_name_="aks")' in text


def test_uses_the_python_name_of_a_module() -> None:
    text = program(read('resource a "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole" { kind = "ClusterRole" }'))
    assert 'a = kubernetes.rbac.v1.ClusterRole("a"' in text


@pytest.mark.parametrize(
    "text",
    [
        'resource a "kubernetes:core/v1:Secret" { data = "${b.name}" }',
        'resource a "kubernetes:core/v1:Secret" { data = toJSON(1) }',
        'resource a "kubernetes:core/v1:Secret" { data = 1 + 2 }',
        'resource a "kubernetes:core/v1:Secret" { data =',
        'resource a "kubernetes:core/v1:Secrets" { }',
        'output a { value = "x" }',
    ],
)
def test_rejects_other_definitions(text: str) -> None:
    with pytest.raises(Unreadable):
        program(read(text))


def test_the_host_generates_a_program(deployment: Deployment) -> None:
    made = deployment.client.GenerateProgram(language_pb2.GenerateProgramRequest(source={"anonymous.pp": POD}))
    assert dict(made.source) == {"__main__.py": AS_PYTHON.encode()}
    with pytest.raises(grpc.RpcError, match="cannot generate this program.*install Pulumi's own Python language host"):
        deployment.client.GenerateProgram(language_pb2.GenerateProgramRequest(source={"a.pp": "a = 1 + 2"}))
