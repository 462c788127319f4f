"""Compares the simulator's charts with upstream's, rendered with the program's values.

The simulator's charts may omit parts (docs/simulator.md lists them). Others must be equal, and no chart may accept
values that upstream rejects.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from config.data.chart_values import value_problems
from config.data.versions import versions
from k8s.objects import Object
from simulator.charts import make_values
from tests.support.charts import VALUES, helm

pytestmark = pytest.mark.upstream


class _Loader(yaml.CSafeLoader):
    """The fast loader in C, for megabytes of CRDs. Reads an unquoted `=` (in a CRD's enum) as text."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda _, node: node.value)
Grant = tuple[str, str, str, str]
"""API group, resource, verb, and object name, or * for all."""
HOOK = "helm.sh/hook"
OF_HOOKS = {"Secret prometheus-kube-prometheus-admission"}
"""Objects that upstream's chart creates by a hook's Job."""


@pytest.fixture(scope="session")
def upstream() -> Path:
    return Path(os.environ["UPSTREAM_CHARTS"])


@pytest.fixture(scope="module", params=make_values.NAMES)
def chart(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def both(chart: str, upstream: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Object, Object]]:
    folder = tmp_path_factory.mktemp(chart)
    ours, theirs = (objects(chart, charts, folder) for charts in (make_values.CHARTS, upstream))
    assert ours.keys() - theirs.keys() <= OF_HOOKS
    return [(name, ours[name], theirs[name]) for name in ours.keys() & theirs.keys()]


def objects(chart: str, charts: Path, folder: Path) -> dict[str, Object]:
    code, text = helm("template", chart, VALUES[chart], folder, "--include-crds", charts=charts)
    assert code == 0, text
    rendered = yaml.load_all(text, _Loader)
    return {f"{obj['kind']} {obj['metadata']['name']}": obj for obj in rendered if obj}


def test_upstreams_charts_have_the_pinned_versions_and_keys(chart: str, upstream: Path) -> None:
    metadata = yaml.safe_load((upstream / chart / "Chart.yaml").read_text())
    assert metadata["version"] == versions().charts[chart].version
    assert value_problems(chart, yaml.safe_load((upstream / chart / "values.yaml").read_text())) == []


def test_hooks_agree(both: list[tuple[str, Object, Object]]) -> None:
    for name, *objs in both:
        mine, theirs = (
            {key: value for key, value in (obj["metadata"].get("annotations") or {}).items() if key.startswith(HOOK)}
            for obj in objs
        )
        assert mine == theirs, name


def grants(role: Object) -> Iterator[Grant]:
    for rule in role["rules"] or ():
        for group in rule.get("apiGroups", [""]):
            for resource in rule.get("resources", rule.get("nonResourceURLs", [])):
                for verb in rule["verbs"]:
                    yield from ((group, resource, verb, name) for name in rule.get("resourceNames") or ["*"])


def test_roles_grant_no_more_than_upstreams(both: list[tuple[str, Object, Object]]) -> None:
    for name, ours, theirs in both:
        if ours["kind"] in ("Role", "ClusterRole"):
            given = set(grants(theirs))
            for grant in grants(ours):
                wider = [all(a in (b, "*") for a, b in zip(other, grant, strict=True)) for other in given]
                assert any(wider), (name, grant)


def test_images_and_commands_of_containers_agree(both: list[tuple[str, Object, Object]]) -> None:
    for name, ours, theirs in both:
        for kind in ("initContainers", "containers"):
            mine, other = ({each["name"]: each for each in containers(obj, kind)} for obj in (ours, theirs))
            assert {key: run(each) for key, each in mine.items()} == {key: run(each) for key, each in other.items()}, (
                name
            )


def containers(obj: Object, kind: str) -> list[Object]:
    template = obj.get("spec", {}).get("template", {})
    found: list[Object] = template.get("spec", {}).get(kind) or []
    return found


def run(container: Object) -> tuple[str, list[str]]:
    return container["image"], container.get("command") or []


def test_webhooks_agree(both: list[tuple[str, Object, Object]]) -> None:
    for name, ours, theirs in both:
        if ours["kind"].endswith("WebhookConfiguration"):
            assert by_name(ours["webhooks"]) == by_name(theirs["webhooks"]), name


def by_name(webhooks: list[Object]) -> dict[str, Object]:
    return {each["name"]: defaulted(each) for each in webhooks}


def defaulted(webhook: Object) -> Object:
    """Returns a webhook with the API server's defaults, and without the certificate from upstream's hook."""
    rules = [{"scope": "*"} | rule for rule in webhook["rules"]]
    client = {key: value for key, value in webhook["clientConfig"].items() if key != "caBundle"}
    return {"objectSelector": {}} | webhook | {"rules": rules, "clientConfig": client}


SAME = ("type", "default", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "required")


def closed(crd: Object) -> Iterator[tuple[str, Object]]:
    """Yields every level of a CRD's specs with its path; omits open levels and constraints of quantities."""

    def below(schema: Object, path: str) -> Iterator[tuple[str, Object]]:
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return
        quantity = schema.get("x-kubernetes-int-or-string")
        yield path, {} if quantity else {key: schema[key] for key in SAME if key in schema}
        for key, child in schema.get("properties", {}).items():
            yield from below(child, f"{path}.{key}")
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                yield from below(schema[key], f"{path}.{key}")

    for version in crd["spec"]["versions"]:
        yield from below(version["schema"]["openAPIV3Schema"]["properties"].get("spec", {}), version["name"])


def test_fields_of_crds_have_upstreams_constraints(both: list[tuple[str, Object, Object]]) -> None:
    for name, ours, theirs in both:
        if ours["kind"] == "CustomResourceDefinition":
            known = dict(closed(theirs))
            for path, constraints in closed(ours):
                assert constraints == known.get(path), (name, path)


def test_jobs_of_prometheus_have_upstreams_names(both: list[tuple[str, Object, Object]]) -> None:
    """A job has the value of the ServiceMonitor's `jobLabel` on its Service, or the Service's name."""
    found = {name: (ours, theirs) for name, ours, theirs in both}
    for name, monitors in found.items():
        if name.startswith("ServiceMonitor "):
            mine, other = (each["spec"].get("jobLabel") for each in monitors)
            assert mine == other, name
            services = found.get(name.replace("ServiceMonitor", "Service"))
            if mine and services:
                assert services[0]["metadata"]["labels"].get(mine) == services[1]["metadata"]["labels"].get(mine), name
