from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from config.data import data
from simulator.azure.types.agent_pool import nodes
from simulator.world.faults import new_fault
from tests.support import networks as net
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, FakeBackend, pool_path, start
from tests.support.azure_resources import parents
from tests.support.blob_account import ACCOUNT, IDENTITY
from tests.support.leaves import leaves

SCOPE = f"/subscriptions/{SUBSCRIPTION.subscription_id}"
PLACES = {
    "account": ACCOUNT,
    "address": net.ADDRESS,
    "cluster": CLUSTER,
    "clusters": CLUSTER.rpartition("/")[0],
    "feature": f"{SCOPE}/providers/Microsoft.Features/featureProviders/Microsoft.ContainerService"
    "/subscriptionFeatureRegistrations/AKSInfinibandSupport",
    "group": GROUP,
    "identities": IDENTITY.rpartition("/")[0],
    "identity": IDENTITY,
    "location": "location",
    "machines": f"{GROUP}/providers/Microsoft.Compute/virtualMachines",
    "network": net.NETWORK,
    "networks": net.NETWORK.rpartition("/virtualNetworks")[0],
    "node": nodes.node_name(nodes.scale_set(pool_path("spot"), "spot"), 0),
    "subscription": SCOPE,
    "registries": net.REGISTRY.rpartition("/")[0],
    "storage": ACCOUNT.rpartition("/")[0],
    "user": SUBSCRIPTION.object_id,
    "zone": net.zone("privatelink.blob.core.windows.net"),
}
TEXTS = [file.read_text("utf-8") for file in sorted(Path(__file__).parent.glob("examples*.yaml"))]
TABLES = [data.parsed(re.sub(r"<(\w+)>", lambda word: PLACES[word[1]], text)) for text in TEXTS]
SECTIONS: dict[str, dict[str, Any]] = {name: section for table in TABLES for name, section in table.items()}
assert len(SECTIONS) == sum(map(len, TABLES)), "two files have a section of the same name"
KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


@dataclass(frozen=True)
class PublishedExample:
    section: str
    facts: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.facts["file"])

    @property
    def kinds(self) -> dict[str, str]:
        """Omits the fields of `values`."""
        shown = {path: kind for kind, paths in self.facts.get("shown", {}).items() for path in _flat(paths)}
        return {_full(path): kind for path, kind in shown.items()}

    @property
    def values(self) -> dict[str, Any]:
        return {_full(path): value for path, value in self.facts.get("values", {}).items()}

    @property
    def open(self) -> set[str]:
        listed = [_full(path) for path in SECTIONS[self.section].get("open", {})]
        return {path for path in self.kinds if any(_is_below(path, above) for above in listed)}


def _flat(paths: Any) -> Iterator[str]:
    for each in paths:
        yield from (_flat(each) if isinstance(each, list) else [each])


def _full(path: str) -> str:
    return f"properties{path}" if path.startswith(".") else path


def _is_below(path: str, above: str) -> bool:
    return path == above or path.startswith((f"{above}.", f"{above}["))


EXAMPLES = [PublishedExample(section, facts) for section, found in SECTIONS.items() for facts in found["examples"]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[httpx.Response]]]:
    """Sends each request once for each of the example's statuses."""
    arm, found = start(tmp_path_factory.mktemp("examples") / "azure", FakeBackend()), {}
    try:
        for path, body in parents().items():
            assert arm.put(path, body).is_success, path
            arm.done()
        arm.server.world.faults.fault(new_fault("lock", level="CanNotDelete", scope="my-resource-group"))
        last = None
        for example in EXAMPLES:
            found[example.name] = [last := _sent(arm, example, last) for _ in example.facts["status"]]
        yield found
    finally:
        arm.stop()


def _sent(arm: Arm, example: PublishedExample, last: httpx.Response | None) -> httpx.Response:
    """`<location>` stands for the previous answer's Location header."""
    method, path = example.facts["request"].split()
    if path == "location" and last is not None:
        path = urlsplit(last.headers["location"]).path
    query = {"api-version": SECTIONS[example.section]["version"]} | example.facts.get("query", {})
    answer = arm.call(method, path, example.facts.get("body"), **query)
    arm.done()
    return answer


def _shown(answers: list[httpx.Response]) -> dict[str, Any]:
    bodies = [json.loads(answer.content) for answer in answers if answer.content]
    return dict(leaves(bodies[-1])) if bodies else {}


@pytest.fixture(params=EXAMPLES, ids=lambda example: example.name)
def example(request: pytest.FixtureRequest) -> PublishedExample:
    found: PublishedExample = request.param
    return found


def test_statuses_and_headers_agree(example: PublishedExample, answers: dict[str, Any]) -> None:
    found = answers[example.name]
    assert [each.status_code for each in found] == example.facts["status"], found[0].text
    assert [name for name in example.facts.get("headers", ()) if name not in found[0].headers] == []


def test_types_of_fields_agree(example: PublishedExample, answers: dict[str, Any]) -> None:
    shown = {path: KINDS.get(type(value)) for path, value in _shown(answers[example.name]).items()}
    assert {path: shown.get(path) for path in example.kinds} == {
        path: None if path in example.open else kind for path, kind in example.kinds.items()
    }


def test_values_agree(example: PublishedExample, answers: dict[str, Any]) -> None:
    shown = _shown(answers[example.name])
    wrong = {
        path: shown.get(path)
        for path, value in example.values.items()
        if not (re.fullmatch(value, str(shown.get(path))) if isinstance(value, str) else shown.get(path) == value)
    }
    assert wrong == {}


def test_an_answer_without_fields_in_the_example_has_no_body(
    example: PublishedExample, answers: dict[str, Any]
) -> None:
    if not {**example.kinds, **example.values}:
        assert [each.text for each in answers[example.name] if each.content and each.json()] == []


@pytest.mark.parametrize("section", SECTIONS)
def test_every_open_field_is_in_an_example(section: str) -> None:
    missed = {path for example in EXAMPLES if example.section == section for path in example.open}
    listed = [_full(path) for path in SECTIONS[section].get("open", {})]
    assert [above for above in listed if not any(_is_below(path, above) for path in missed)] == []
