from __future__ import annotations

import base64
import json
import sys
from typing import Any

import pytest
import yaml
from pulumi.runtime.proto import provider_pb2

from simulator.plugins.kubernetes import configuration, exec_credentials
from simulator.plugins.kubernetes.kubeconfig import KubeconfigError
from simulator.plugins.marshal import UNKNOWN, Secret, encode


def kubeconfig(server: str, user: str = "u") -> str:
    return yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": user}}],
            "current-context": "x",
            "users": [{"name": user, "user": {"token": user}}],
        }
    )


ONE, TWO = kubeconfig("https://one"), kubeconfig("https://two")
PROXIED = ONE.replace("server: https://one", "server: https://one:443\n    proxy-url: http://127.0.0.1:3128")
NAMED = {"kubeconfig": ONE, "clusterIdentifier": "a"}


@pytest.mark.parametrize(
    ("old", "new", "diffs", "replaces"),
    [
        ({"kubeconfig": ONE}, {"kubeconfig": ONE}, [], []),
        ({"kubeconfig": ONE}, {"kubeconfig": TWO}, ["kubeconfig"], ["kubeconfig"]),
        ({"kubeconfig": ONE}, {"kubeconfig": kubeconfig("https://one", "other")}, ["kubeconfig"], []),
        ({"kubeconfig": ONE}, {"kubeconfig": UNKNOWN}, ["kubeconfig"], ["kubeconfig"]),
        ({"kubeconfig": Secret(ONE)}, {"kubeconfig": Secret(ONE)}, [], []),
        (NAMED, NAMED | {"kubeconfig": TWO}, ["kubeconfig"], []),
        ({"kubeconfig": ONE}, {"kubeconfig": PROXIED}, ["kubeconfig"], ["kubeconfig"]),
        (NAMED, NAMED | {"kubeconfig": PROXIED}, ["kubeconfig"], []),
        (NAMED, NAMED | {"kubeconfig": UNKNOWN}, ["kubeconfig"], []),
        (NAMED, NAMED | {"clusterIdentifier": "b"}, ["clusterIdentifier"], ["clusterIdentifier"]),
        ({"kubeconfig": ONE}, NAMED, ["clusterIdentifier"], []),
    ],
    ids=[
        "the same", "another server", "other credentials", "unknown", "the same secret", "identified",
        "proxy", "identified, proxy", "identified, unknown", "another identifier", "identifier added",
    ],
)  # fmt: skip
def test_another_cluster_replaces_the_provider(
    old: dict[str, Any], new: dict[str, Any], diffs: list[str], replaces: list[str]
) -> None:
    request = provider_pb2.DiffRequest(olds=encode(old), news=encode(new))
    found = configuration.diff(request)
    assert list(found.diffs) == diffs
    assert list(found.replaces) == replaces


@pytest.mark.parametrize("inputs", [{"enableServerSideApply": "false"}, {"renderYamlToDirectory": "out"}])
def test_rejects_settings_of_the_official_plugin(inputs: dict[str, str]) -> None:
    response = configuration.check(provider_pb2.CheckRequest(news=encode(inputs)))
    assert [failure.property for failure in response.failures] == list(inputs)


def with_command(*command: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(ONE)
    config["users"][0]["user"] = {"exec": {"command": command[0], "args": list(command[1:]), "installHint": "get it"}}
    return config


def test_gets_the_token_from_the_command_of_the_kubeconfig() -> None:
    printed = json.dumps({"kind": "ExecCredential", "status": {"token": "t0ken", "clientCertificateData": "pem"}})
    resolved = exec_credentials.resolve(with_command(sys.executable, "-c", f"print({printed!r})"))
    expected = {"token": "t0ken", "client-certificate-data": base64.b64encode(b"pem").decode()}
    assert resolved["users"][0]["user"] == expected


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (["no-such-command"], '"no-such-command", which is not on PATH: get it'),
        ([sys.executable, "-c", "raise SystemExit('log in first')"], "which failed: log in first"),
        ([sys.executable, "-c", ""], "which printed no ExecCredential"),
    ],
    ids=["missing", "failing", "silent"],
)
def test_reports_a_failed_command_of_the_kubeconfig(command: list[str], complaint: str) -> None:
    with pytest.raises(KubeconfigError, match=complaint):
        exec_credentials.resolve(with_command(*command))
