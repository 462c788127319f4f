from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from config.schema.json_schema import schema_at, schema_of
from config.schema.models import DEFAULT_POOL
from tests.support import golden
from tests.support.case_files import read
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, program
from tests.support.settings import INVENTORY

Keys = dict[str, Any]
SETS = ("adminGroupObjectIds", "authorizedIpRanges", "groups", "taints", "users", "workloads", "zones")
"""Lists that are sets."""
FREE = ("podOverrides", "values")
"""Maps with text that may look like a number."""
OPTIONS = ("protect", "retainOnDelete", "deleteBeforeReplace", "ignoreChanges", "replaceOnChanges", "customTimeouts")
MANY: Keys = read(__file__, "same_settings")
STACKS: dict[str, Keys] = {stack: golden.keys(stack) for stack in golden.NAMES} | {"many": MANY}
SCHEMA = schema_of(INVENTORY.stack_file)
ELSEWHERE: tuple[tuple[str, ...], ...] = (
    ("cluster", "maintenanceWindow"), ("network", "jumpBox"), ("network", "outbound"), ("network", "podRange"),
    ("network", "serviceRange"), ("nodeCount",), ("operators", "schedulerPlugins"),
)  # fmt: skip
"""Keys that are rejected in a stack without their feature."""


def in_another_order(keys: Keys, seed: random.Random) -> Keys:
    def shuffled(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: shuffled(value[key], key) for key in seed.sample(list(value), len(value))}
        if isinstance(value, list):
            return seed.sample(value, len(value)) if name in SETS else value
        return (
            ",".join(seed.sample(names, len(names))) if name == "workloads" and (names := value.split(",")) else value
        )

    return {key: shuffled(keys[key], key) for key in seed.sample(list(keys), len(keys))}


def scalars_as_text(keys: Keys, _: random.Random) -> Keys:
    """`pulumi config set` without a type writes numbers and booleans as text."""

    def text(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return value if name in FREE else {key: text(each, key) for key, each in value.items()}
        return json.dumps(value) if isinstance(value, int | float) else value

    return {key: text(value, key) for key, value in keys.items()}


def workloads_in_the_other_form(keys: Keys, _: random.Random) -> Keys:
    found = keys.get("workloads", "")
    return keys | {"workloads": ",".join(found) if isinstance(found, list) else found.split(",") if found else []}


def pool_by_its_key(keys: Keys, _: random.Random) -> Keys:
    if "vmSku" not in keys:
        return keys
    others = {key: value for key, value in keys.items() if key not in ("vmSku", "nodeCount")}
    return others | {"pools": {DEFAULT_POOL: {"vmSku": keys["vmSku"], "count": keys.get("nodeCount", 2)}}}


def model_size_as_an_option(keys: Keys, _: random.Random) -> Keys:
    """Moves `modelSize` into the options of Metaseq, which alone reads it."""
    if "modelSize" not in keys or "metaseq" not in keys["workloads"]:
        return keys
    others = {key: value for key, value in keys.items() if key != "modelSize"}
    options = keys.get("workloadOptions", {})
    chosen = {**options.get("metaseq", {}), "modelSize": keys["modelSize"]}
    return others | {"workloadOptions": options | {"metaseq": chosen}}


def region_by_the_other_key(keys: Keys, _: random.Random) -> Keys:
    others = {key: value for key, value in keys.items() if key != "azure-native:location"}
    return others | {"location": keys.get("azure-native:location", "eastus")} if "platformStack" not in keys else keys


FORMS: tuple[Callable[[Keys, random.Random], Keys], ...] = (
    in_another_order, scalars_as_text, workloads_in_the_other_form, pool_by_its_key, model_size_as_an_option,
    region_by_the_other_key,
)  # fmt: skip


def made(recorder: Recorder) -> Keys:
    return {
        f"{each.type} {each.name}": {
            **{name: getattr(each, name) for name in ("inputs", "parent", "dependencies", "provider")},
            **{name: str(getattr(each.request, name)) for name in OPTIONS},
        }
        for each in recorder.registered
    }


def with_defaults(keys: Keys, schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Keys:
    found = dict(keys)
    for name in {*keys, *schema_at(schema, path).get("properties", {})}:
        here, default = (*path, name), schema_at(schema, (*path, name)).get("default")
        if here in ELSEWHERE or name in FREE:
            continue
        if schema_at(schema, here).get("type") == "object":
            found |= {name: below} if (below := with_defaults(keys.get(name, {}), schema, here)) else {}
        elif name not in keys and default is not None:
            found[name] = default
    return found


def run(stack: str, keys: Mapping[str, Any]) -> Recorder:
    others = {keys["platformStack"]: golden.run(keys["platformStack"])} if "platformStack" in keys else {}
    azure = Azure(stacks=others, inside=stack != "private-outside")
    return program(keys, azure, stack if stack in golden.FILES else golden.DEV, secret=["workloadOptions"])


@functools.cache
def usual(stack: str) -> Recorder:
    return run(stack, STACKS[stack])


def shown(recorder: Recorder) -> Keys:
    """Omits `platform`, which repeats the settings."""
    return {name: value for name, value in recorder.shown.items() if name != "platform"}


@pytest.mark.long
@given(
    st.just("many") | st.sampled_from([*STACKS]),
    st.lists(st.sampled_from(FORMS), min_size=1, unique=True),
    st.randoms(),
)
@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=40,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
def test_other_forms_declare_the_same_resources(stack: str, forms: list[Any], seed: random.Random) -> None:
    keys = functools.reduce(lambda found, form: form(found, seed), forms, STACKS[stack])
    found, expected = run(stack, keys), usual(stack)
    assert made(found) == made(expected)
    assert shown(found) == shown(expected)


def test_explicit_defaults_change_nothing() -> None:
    keys = with_defaults({key: value for key, value in MANY.items() if key != "workloadOptions"}, SCHEMA)
    assert len(json.dumps(keys)) > 3 * len(json.dumps(MANY))
    found, expected = run("many", keys | {"workloadOptions": MANY["workloadOptions"]}), usual("many")
    assert made(found) == made(expected)
    assert shown(found) == shown(expected)
