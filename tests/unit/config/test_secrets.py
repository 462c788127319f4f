"""Secrets: refused in plain text where they must not be, and never printed; names of keys always are."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

import workloads
from config.problems.errors import SettingsError
from config.rules.plain_secrets import _secrets, plain_values
from config.schema.workload import Requirements, WorkloadOptions
from tests.support.settings import H100, SECRET, Workload, dev, load
from tests.unit.config.test_any_input import KEYS, changed


class PasswordOptions(WorkloadOptions):
    password: SecretStr | None = None


STACK = {"vmSku": H100, "workloads": "shell", "workloadOptions": {"shell": {"password": "hunter2"}}}


KNOWN = {"shell": Workload("shell", Requirements(), PasswordOptions)}


def test_an_encrypted_password_reaches_its_workload() -> None:
    options = load(STACK, known=KNOWN, secret=("workloadOptions",)).placements["shell"].options
    assert isinstance(options, PasswordOptions)
    assert options.password == SecretStr("hunter2")
    assert "hunter2" not in repr(options)


def test_a_password_in_plain_text_is_refused_without_being_printed() -> None:
    with pytest.raises(SettingsError) as caught:
        load(STACK, known=KNOWN)
    assert "hunter2" not in str(caught.value)
    (problem,) = caught.value.problems
    assert "plain text" in problem.what
    assert problem.fix == "pulumi config set --secret --path workloadOptions.shell.password"


def test_a_mistyped_password_in_plain_text_is_to_be_encrypted() -> None:
    with pytest.raises(SettingsError) as caught:
        load({**STACK, "workloadOptions": {"shell": {"pasword": "hunter2"}}}, known=KNOWN)
    assert [problem.fix for problem in caught.value.problems] == [
        "pulumi config set --secret --path workloadOptions.shell.password"
        " && pulumi config rm --path workloadOptions.shell.pasword"
    ]


@pytest.mark.parametrize(
    "keys", [{"tags": ["team=hunter2"]}, {"tags": "team=hunter2"}, {"cluster": {"localAccounts": {"enabled": True}}}]
)
def test_a_fix_reads_no_value_of_a_secret(keys: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": H100, **keys}, secret=tuple(keys))
    assert not [problem.fix for problem in caught.value.problems if "hunter2" in problem.fix or "true" in problem.fix]


def test_a_password_of_the_wrong_kind_is_not_printed() -> None:
    with pytest.raises(SettingsError) as caught:
        load(
            {**STACK, "workloadOptions": {"shell": {"password": ["hunter2"]}}}, known=KNOWN, secret=("workloadOptions",)
        )
    assert "hunter2" not in str(caught.value)


def test_other_options_beside_a_password_are_told_in_full() -> None:
    with pytest.raises(SettingsError) as caught:
        load({**STACK, "workloadOptions": {"shell": {"pool": "gpus"}}}, known=KNOWN, secret=("workloadOptions",))
    assert "is 'gpus', not a pool of this stack" in str(caught.value)


def said(path: tuple[str, ...], value: Any, *secret: str) -> dict[str, tuple[str, str]]:
    """What is wrong, and the fix, by key: of `dev`, whose `workloadOptions` are secret, with one more thing set."""
    with pytest.raises(SettingsError) as caught:
        load(changed(dev(), (path, value)), known=workloads.find(), secret=(*SECRET, *secret))
    assert "hunter2" not in str(caught.value)
    return {".".join(map(str, problem.path)): (problem.what, problem.fix) for problem in caught.value.problems}


@pytest.mark.parametrize("value", [5, "hunter2", ["hunter2"], None, {}])
def test_a_workload_that_there_is_not_is_named_whatever_its_options_are(value: Any) -> None:
    found = said(("workloadOptions", "nccl_allreduce"), value)
    what = "is an unknown key; near: nccl-allreduce"
    key = "workloadOptions.nccl_allreduce"
    there = 'set workloadOptions["nccl-allreduce"] to what you need in the stack file, and remove'
    assert found == {key: (what, f"{there} {key}" if value else f"pulumi config rm --path {key}")}


def test_its_options_are_moved_where_they_can_be() -> None:
    (found,) = said(("workloadOptions", "nccl_allreduce"), {"numNodes": 2}).values()
    there, here = 'workloadOptions["nccl-allreduce"].numNodes', "workloadOptions.nccl_allreduce"
    assert found[1] == f"pulumi config set --path '{there}' 2 && pulumi config rm --path {here}"


def test_a_password_that_stands_too_high_is_moved_without_being_printed() -> None:
    for key, value in {"password": "hunter2", "jupyterlab": {"password": "hunter2"}}.items():
        with pytest.raises(SettingsError) as caught:
            load({**STACK, key: value, "workloadOptions": {}, "workloads": ""}, known=workloads.find())
        (problem,) = caught.value.problems
        assert problem.fix == (
            f"pulumi config set --secret --path workloadOptions.jupyterlab.password && pulumi config rm {key}"
        )
        assert "hunter2" not in str(caught.value)


def test_a_mistyped_password_is_moved_without_being_printed() -> None:
    stack = dev()
    stack["workloadOptions"]["jupyterlab"] = {"passwrod": "hunter2"}
    with pytest.raises(SettingsError) as caught:
        load(stack, known=workloads.find(), secret=SECRET)
    (problem,) = caught.value.problems
    path = "workloadOptions.jupyterlab"
    assert problem.what == "is an unknown key; near: password"
    assert problem.fix == (
        f"pulumi config set --secret --path {path}.password && pulumi config rm --path {path}.passwrod"
    )


@pytest.mark.parametrize(
    ("path", "value", "what", "fix"),
    [
        (("cluster", "tier"), "hunter2", None, "change cluster.tier in the stack file to what is allowed"),
        (("cluster", "teir"), "hunter2", "is an unknown key; near: tier",
         "set cluster.tier to what you need in the stack file, and remove cluster.teir"),
        (("cluster", "resourceGroups"), "hunter2", "is an unknown key; near: resourceGroup",
         "pulumi config set --secret --path cluster.resourceGroup && "
         "pulumi config rm --path cluster.resourceGroups"),
        (("cluster", "resourceGroup"), "/hunter2/", None, "pulumi config set --secret --path cluster.resourceGroup"),
        (("cluster", "systemPool"), ["hunter2"], "is a list",
         "change cluster.systemPool in the stack file to what is allowed"),
        (("cluster", "systemPool", "vmSku"), "hunter2", None,
         "change cluster.systemPool.vmSku in the stack file to what is allowed"),
    ],
)  # fmt: skip
def test_a_secret_hides_values_and_no_names(path: tuple[str, ...], value: Any, what: str | None, fix: str) -> None:
    hidden = "is not valid (its value is a secret, so it is not shown)"
    assert said(path, value, "cluster") == {".".join(path): (what or hidden, fix)}


@pytest.mark.parametrize("path", [path for path, _ in KEYS if path[0] != "workloadOptions"], ids=".".join)
def test_no_value_of_a_secret_key_is_printed(path: tuple[str, ...]) -> None:
    for key in (path, (*path[:-1], path[-1][:-1] or "x")):
        assert "hunter2" not in told(changed(dev(), (key, "hunter2/")), *SECRET, path[0], key[0])


def told(stack: dict[str, Any], *secret: str) -> str:
    """What is said of a stack; nothing where it can be deployed."""
    try:
        load(stack, known=workloads.find(), secret=secret)
    except SettingsError as error:
        return str(error)
    return ""


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


def test_values_that_look_like_secrets_are_reported_without_being_printed() -> None:
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


def test_secrets_in_other_settings_of_operators_are_reported() -> None:
    env = {"HTTP_PROXY": "http://u:hunter2@proxy:3128", "MY_TOKEN": "hunter2", "UNLOAD_STORAGE_MODULES": "true"}
    settings = load({"vmSku": H100, "nodeCount": 2, "operators": {"networkOperator": {"ofedEnv": env}}})
    found = list(plain_values(settings, encrypted=False))
    assert [text.partition(" ")[0] for text in found] == [
        f"operators.networkOperator.ofedEnv.{name}" for name in ("HTTP_PROXY", "MY_TOKEN")
    ]
    assert "hunter2" not in "".join(found)


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ({"global": {"slack_api_url": "https://hooks.slack.com/services/T0/B0/x"}}, 1),
        ({"grafana.ini": {"auth.azuread": {"client_secret": "x"}}}, 1),
        ({"grafana": {"admin": {"existingSecret": "x", "passwordKey": "y"}}}, 0),
        ({"token": "$__file{/etc/token}", "bearer_token_file": "/run/token", "tokenSecretName": "x"}, 0),
        ({"imagePullSecrets": ["x"], "automountServiceAccountToken": "false", "secretName": "x"}, 0),
        ({"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "x"}, {"name": "DB_PASS", "value": "x"}]}, 2),
        ({"env": [{"name": "MAX_TOKENS", "value": "12"}, {"name": "TOKENIZERS_PARALLELISM", "value": "x"}]}, 0),
        ({"receivers": [{"webhook_configs": [{"url": "https://me:x@example.org"}]}]}, 1),
    ],
)
def test_names_of_secrets_are_no_secrets(values: dict[str, Any], count: int) -> None:
    assert len(list(_secrets(values, ()))) == count
