from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

import workloads
from config.problems.errors import SettingsError
from config.problems.fixes import path_text
from config.rules.plain_secrets import _secrets, plain_values
from config.schema.workload import Requirements, WorkloadOptions
from tests.support.case_files import case_table
from tests.support.settings import SECRET, Workload, dev, load, problems
from tests.support.sizes import H100
from tests.unit.config.test_any_input import KEYS, changed


class PasswordOptions(WorkloadOptions):
    password: SecretStr | None = None


STACK = {"vmSku": H100, "workloads": "shell", "workloadOptions": {"shell": {"password": "hunter2"}}}


KNOWN = {"shell": Workload("shell", Requirements(), PasswordOptions)}


def test_a_workload_gets_its_encrypted_password() -> None:
    options = load(STACK, known=KNOWN, secret=("workloadOptions",)).placements["shell"].options
    assert isinstance(options, PasswordOptions)
    assert options.password == SecretStr("hunter2")
    assert "hunter2" not in repr(options)


@pytest.mark.parametrize(
    "keys", [{"tags": ["team=hunter2"]}, {"tags": "team=hunter2"}, {"cluster": {"localAccounts": {"enabled": True}}}]
)
def test_a_fix_contains_no_part_of_a_secret(keys: dict[str, Any]) -> None:
    found = problems({"vmSku": H100, **keys}, secret=tuple(keys))
    assert found
    assert not [problem.fix for problem in found if "hunter2" in problem.fix or "true" in problem.fix]


def problems_with(path: tuple[str, ...], value: Any, *secret: str) -> dict[str, tuple[str, str]]:
    found = problems(changed(dev(), (path, value)), known=workloads.find(), secret=(*SECRET, *secret))
    assert "hunter2" not in str(SettingsError(found))
    return {".".join(map(str, problem.path)): (problem.what, problem.fix) for problem in found}


@pytest.mark.parametrize("value", [5, "hunter2", ["hunter2"], None, {}])
def test_an_unknown_workload_is_reported_with_any_options(value: Any) -> None:
    found = problems_with(("workloadOptions", "nccl_allreduce"), value)
    what = "is an unknown key; similar: nccl-allreduce"
    key = "workloadOptions.nccl_allreduce"
    there = 'in the stack file, set workloadOptions["nccl-allreduce"] to the value that you need, and remove'
    assert found == {key: (what, f"{there} {key}" if value else f"pulumi config rm --path {key}")}


def test_options_of_an_unknown_workload_move_to_the_intended_one() -> None:
    (found,) = problems_with(("workloadOptions", "nccl_allreduce"), {"numNodes": 2}).values()
    there, here = 'workloadOptions["nccl-allreduce"].numNodes', "workloadOptions.nccl_allreduce"
    assert found[1] == f"pulumi config set --path '{there}' 2 && pulumi config rm --path {here}"


@case_table(__file__, "refused")
def test_rejects_a_password_without_printing_it(
    keys: dict[str, Any], known: str, encrypted: bool, path: str, what: str, fix: str
) -> None:
    there, secret = KNOWN if known == "shell" else workloads.find(), SECRET if encrypted else ()
    found = problems(STACK | keys, known=there, secret=secret)
    assert [(path_text(each.path), each.what, each.fix) for each in found] == [(path, what, fix)]
    assert "hunter2" not in str(SettingsError(found))


@case_table(__file__, "hidden")
def test_secret_values_are_hidden_but_names_are_not(path: list[str], value: Any, what: str | None, fix: str) -> None:
    hidden = "is not valid (its value is a secret, so it is not shown)"
    assert problems_with(tuple(path), value, "cluster") == {".".join(path): (what or hidden, fix)}


@pytest.mark.parametrize("path", [path for path, _ in KEYS if path[0] != "workloadOptions"], ids=".".join)
def test_no_value_of_a_secret_key_is_printed(path: tuple[str, ...]) -> None:
    for key in (path, (*path[:-1], path[-1][:-1] or "x")):
        stack, secret = changed(dev(), (key, "hunter2/")), (*SECRET, path[0], key[0])
        found = problems(stack, known=workloads.find(), secret=secret)
        assert found or {"tags", "ofedEnv", "rotation"} & {*key}, "only these accept any text"
        assert "hunter2" not in str(SettingsError(found))


SECRETS = {
    "operators": {"kubePrometheusStack": {"enabled": True, "values": {"grafana": {"adminPassword": "hunter2"}}}},
    "workloads": "nccl-allreduce",
    "workloadOptions": {
        "nccl-allreduce": {
            "podOverrides": {
                "spec": {"containers": [{"name": "worker", "env": [{"name": "HF_TOKEN", "value": "hunter2"}]}]}
            }
        }
    },
}


def test_warns_about_secrets_without_printing_them() -> None:
    settings = load({"vmSku": H100, "nodeCount": 2, **SECRETS}, known=workloads.find())
    found = list(plain_values(settings, encrypted=False))
    assert ["hunter2" in text for text in found] == [False, False]
    chart, env = (
        "operators.kubePrometheusStack.values.grafana.adminPassword",
        '"].podOverrides.spec.containers[0].env[0]',
    )
    assert f"{chart} looks like a secret" in found[0]
    assert f"pulumi config set -s dev --secret --path {chart}" in found[0]
    assert env in found[1]
    assert "valueFrom.secretKeyRef" in found[1]
    assert len(list(plain_values(settings, encrypted=True))) == 1


def test_warns_about_secrets_in_other_settings_of_operators() -> None:
    env = {"HTTP_PROXY": "http://u:hunter2@proxy:3128", "MY_TOKEN": "hunter2", "UNLOAD_STORAGE_MODULES": "true"}
    settings = load({"vmSku": H100, "nodeCount": 2, "operators": {"networkOperator": {"ofedEnv": env}}})
    found = list(plain_values(settings, encrypted=False))
    assert [text.partition(" ")[0] for text in found] == [
        f"operators.networkOperator.ofedEnv.{name}" for name in ("HTTP_PROXY", "MY_TOKEN")
    ]
    assert "hunter2" not in "".join(found)


@case_table(__file__, "names")
def test_finds_values_of_secrets_but_not_references(values: dict[str, Any], count: int) -> None:
    assert len(list(_secrets(values, ()))) == count


def test_the_password_in_a_url_is_not_printed() -> None:
    stack = {"vmSku": H100, "images": {"registry": "https://user:hunter2@registry.example.com/x"}}
    (problem,) = problems(stack)
    assert "images.registry is 'https://[secret]@registry.example.com/x', not a registry" in problem.text("dev")
