"""The rules that need no cluster: quantities, paths, differences, field managers, and what makes another cluster."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi.runtime.proto import provider_pb2

from simulator.kube.quantity import canonical, value
from simulator.plugins.kubernetes import configuration, exec_credentials, managed_fields
from simulator.plugins.kubernetes.awaiters import wait_for
from simulator.plugins.kubernetes.awaiters.jsonpath import JsonPath
from simulator.plugins.kubernetes.checkpoint import prune, to_object, to_properties
from simulator.plugins.kubernetes.kinds import Kind, kind_of_urn
from simulator.plugins.kubernetes.kubeconfig import KubeconfigError
from simulator.plugins.kubernetes.normalize import normalize
from simulator.plugins.kubernetes.release import options, tether
from simulator.plugins.kubernetes.release.helm import _reason
from simulator.plugins.kubernetes.structural import compare, ignored, parse_path, path_text
from simulator.plugins.marshal import UNKNOWN, Secret, encode


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("0.5Gi", "512Mi"), ("1000m", "1"), ("0.5", "500m"), ("2000", "2k"),
        ("1500m", "1500m"), (8, "8"), ("512Ki", "512Ki"), ("100", "100"), ("1e3", "1e3"), ("0", "0"), ("0Mi", "0"),
        ("1Ki", "1Ki"), ("0.5Ki", "512"), ("text", "text"), (True, True), (None, None), ("-1024Ki", "-1Mi"),
    ],
)  # fmt: skip
def test_quantities(written: Any, shown: Any) -> None:
    assert canonical(written) == shown


@pytest.mark.parametrize(
    ("text", "exact"),
    [("64Mi", 2**26), ("1G", 10**9), ("5", 5), (7, 7), ("1.5Gi", 3 * 2**29), ("250m", Fraction(1, 4))],
)
def test_quantities_have_an_exact_value(text: str | int, exact: Fraction | int) -> None:
    assert value(text) == exact


def test_what_is_no_quantity_has_no_value() -> None:
    with pytest.raises(ValueError, match="'64 GB' is no quantity, such as 2, 500m or 64Gi"):
        value("64 GB")


@pytest.mark.parametrize(
    "text", ["spec.containers[0].image", 'metadata.annotations["pulumi.com/skipAwait"]', "data.a", 'a["x.y"][2].z']
)
def test_property_paths_read_as_they_are_written(text: str) -> None:
    assert path_text(parse_path(text)) == text


def test_ignored_paths_cover_what_is_under_them() -> None:
    assert ignored(("spec", "replicas"), ["spec.replicas"])
    assert ignored(("spec", "template", "spec"), ["spec.template"])
    assert ignored(("spec", "containers", 0, "image"), ["spec.containers[*].image"])
    assert not ignored(("spec",), ["spec.replicas"])


def test_a_difference_names_every_property() -> None:
    old = {"same": 1, "number": 1, "gone": {"x": 1}, "items": [1, 2], "nested": {"a": True}}
    new = {"same": 1.0, "number": "1", "items": [1, 3, 4], "nested": {"a": 1}, "new": UNKNOWN}
    name = provider_pb2.PropertyDiff.Kind.Name
    assert {path_text(path): name(change.kind) for path, change in compare(old, new).items()} == {
        "number": "UPDATE",
        "gone": "DELETE",
        "items[1]": "UPDATE",
        "items[2]": "ADD",
        "nested.a": "UPDATE",
        "new": "ADD",
    }


def test_pruning_keeps_the_shape_of_the_inputs() -> None:
    live = {"a": 1, "server": 2, "list": [{"x": 1, "default": 2}, {"injected": 1}]}
    assert prune(live, {"a": 0, "list": [{"x": 0}], "missing": 1}) == {"a": 1, "list": [{"x": 1}]}
    assert prune({}, {"empty": [], "full": [1]}, drops_empty=True) == {"empty": []}


def test_unknowns_keep_an_object_from_being_normalized() -> None:
    unknown = {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "stringData": {"a": UNKNOWN}}
    assert normalize(unknown)["stringData"] == {"a": UNKNOWN}


def test_schema_keywords_have_dashes_on_the_server_only() -> None:
    properties = {"spec": {"x_kubernetes_list_type": "map"}}
    assert to_object(properties) == {"spec": {"x-kubernetes-list-type": "map"}}
    assert to_properties(to_object(properties), {}) == properties


def test_secrets_within_a_list_make_the_whole_list_secret() -> None:
    assert to_properties({"items": ["a", "b"]}, {"items": ["a", Secret("b")]})["items"] == Secret(["a", "b"])


def test_types_of_resources() -> None:
    start = "urn:pulumi:s::p::my:component:Thing$kubernetes:"
    assert kind_of_urn(f"{start}core/v1:Secret::x") == Kind("", "v1", "Secret")
    assert kind_of_urn(f"{start}batch.volcano.sh/v1alpha1:Job::x").api_version == "batch.volcano.sh/v1alpha1"
    with pytest.raises(ValueError, match="is not one of this plugin"):
        kind_of_urn("urn:pulumi:s::p::kubernetes:yaml:ConfigGroup::x")


@pytest.mark.parametrize("manager", ["kubectl", "kubectl-edit", "kubectl-client-side-apply", "pulumi-kubernetes"])
def test_managers_are_recognised_by_how_they_begin(manager: str) -> None:
    entry = {"manager": manager, "operation": "Update", "fieldsV1": {"f:data": {}}}
    live = {"metadata": {"resourceVersion": "7", "managedFields": [entry]}}
    assert managed_fields.hand_over(live, "own") is not None
    entry["subresource"] = "scale"
    assert managed_fields.hand_over(live, "own") is None


def test_fields_are_handed_over_to_the_object_s_own_manager() -> None:
    made = {"manager": "pulumi-kubernetes", "operation": "Update", "fieldsV1": {"f:data": {"f:a": {}}}}
    own = {"manager": "pulumi-kubernetes-1234abcd", "operation": "Apply", "fieldsV1": {"f:data": {"f:b": {}}}}
    other = {"manager": "kubelet", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}
    live = {"metadata": {"resourceVersion": "7", "managedFields": [made, own, other]}}
    patch = managed_fields.hand_over(live, "pulumi-kubernetes-1234abcd")
    assert patch is not None
    assert patch[0]["value"] == [other, own | {"fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}}}]
    assert managed_fields.hand_over({"metadata": {"managedFields": [own, other]}}, own["manager"]) is None  # type: ignore[arg-type]


# -- waitFor -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("{.status.state}", ["ready"]),
        ('{.status.conditions[?(@.type=="Ready")].status}', ["True"]),
        ('{.status.conditions[?(@.type!="Ready")].type}', ["Other"]),
        ("{.status.conditions[*].type}", ["Ready", "Other"]),
        ("{.status.conditions[-1].type}", ["Other"]),
        ("{.status['with.dot']}", [1]),
        (r"{.status.with\.dot}", [1]),
        ("{.missing.field}", []),
        ("{$.status.state}", ["ready"]),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]
    assert JsonPath(path).select({"status": {"state": "ready", "with.dot": 1, "conditions": conditions}}) == found


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ready", 'expected a "jsonpath=" or "condition=" prefix'),
        ("[]", "at least one condition"),
        ("jsonpath=.status", "should be wrapped in brackets"),
        ("jsonpath='{.status}'", "should omit shell quotes"),
        ("jsonpath={.a}=b=c", "format should be"),
        ("jsonpath={.a}=", "requires a value"),
        ("jsonpath={.a[}", "cannot read"),
    ],
)
def test_wait_for_annotations_that_cannot_be_read(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("[", r"\[")):
        wait_for.parse(text)


# -- the provider resource ---------------------------------------------------------------------------------------------


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
        (
            NAMED,
            NAMED | {"kubeconfig": UNKNOWN},
            ["kubeconfig"],
            [],
        ),
        (
            NAMED,
            NAMED | {"clusterIdentifier": "b"},
            ["clusterIdentifier"],
            ["clusterIdentifier"],
        ),
        ({"kubeconfig": ONE}, NAMED, ["clusterIdentifier"], []),
    ],
    ids=[
        "the same", "another server", "other credentials", "unknown", "the same secret", "identified",
        "identified, unknown", "another identifier", "identifier added",
    ],
)  # fmt: skip
def test_what_makes_another_cluster(
    old: dict[str, Any], new: dict[str, Any], diffs: list[str], replaces: list[str]
) -> None:
    request = provider_pb2.DiffRequest(olds=encode(old), news=encode(new))
    found = configuration.diff(request)
    assert list(found.diffs) == diffs
    assert list(found.replaces) == replaces


@pytest.mark.parametrize("inputs", [{"enableServerSideApply": "false"}, {"renderYamlToDirectory": "out"}])
def test_settings_that_need_the_official_plugin_are_refused(inputs: dict[str, str]) -> None:
    response = configuration.check(provider_pb2.CheckRequest(news=encode(inputs)))
    assert [failure.property for failure in response.failures] == list(inputs)


# -- helm --------------------------------------------------------------------------------------------------------------


def test_charts_are_found_as_helm_finds_them() -> None:
    def arguments(**given: Any) -> list[str]:
        return options.chart_arguments(options.DEFAULTS | given)

    assert arguments(chart="oci://host/path/name", version="1.0") == ["oci://host/path/name", "--version", "1.0"]
    repository = {"repo": "https://charts.test", "username": "u", "password": "p"}
    assert arguments(chart="name", repositoryOpts=repository) == [
        *("name", "--repo", "https://charts.test"),
        *("--username", "u", "--password", "p"),
    ]
    assert arguments(chart="name", repositoryOpts={"repo": "added"}) == ["added/name"]
    assert arguments(chart="name", devel=True) == ["name", "--version", ">0.0.0-0"]


def test_options_become_flags() -> None:
    given = options.DEFAULTS | {"name": "r", "namespace": "n", "chart": "c", "timeout": 5}
    install = options.install_arguments(given | {"atomic": True, "waitForJobs": True, "disableWebhooks": True})
    assert install[:3] == ["install", "r", "c"]
    assert {"--atomic", "--wait", "--wait-for-jobs", "--no-hooks"} <= set(install)
    assert install[install.index("--timeout") + 1] == "5s"
    assert "--wait" not in options.install_arguments(given | {"skipAwait": True})
    upgrade = options.upgrade_arguments(given | {"maxHistory": 3, "cleanupOnFail": True})
    assert upgrade[upgrade.index("--history-max") + 1] == "3"
    assert "--cleanup-on-fail" in upgrade
    assert "--wait" not in options.uninstall_arguments(given | {"skipAwait": True})


def test_helm_s_own_words_are_kept() -> None:
    stderr = "level=WARN msg=x\nError: INSTALLATION FAILED: values don't meet the schema:\ndemo:\n- at '/n': wrong\n"
    assert _reason(stderr) == "values don't meet the schema:\ndemo:\n- at '/n': wrong"


# -- credentials and processes -----------------------------------------------------------------------------------------


def with_command(*command: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(ONE)
    config["users"][0]["user"] = {"exec": {"command": command[0], "args": list(command[1:]), "installHint": "get it"}}
    return config


def test_a_kubeconfig_s_command_gives_the_token() -> None:
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
def test_a_kubeconfig_s_command_that_gives_nothing(command: list[str], complaint: str) -> None:
    with pytest.raises(KubeconfigError, match=complaint):
        exec_credentials.resolve(with_command(*command))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_helm_ends_with_the_plugin_that_started_it() -> None:
    start = f"""
import os, subprocess, sys, time
command = [sys.executable, {tether.__file__!r}, str(os.getpid()), sys.executable, "-c", "import time; time.sleep(60)"]
print(subprocess.Popen(command).pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = Path("/proc", parent.stdout.readline().strip(), "stat")
    time.sleep(1)
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 10
    while child.exists() and child.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not child.exists() or child.read_text().split()[2] == "Z"
