"""Keys of other namespaces than the project's: Pulumi does not report those that nothing reads."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Collection, Iterator, Mapping

from pulumi import _types
from pydantic import BaseModel

from config.facts.near import mistyped
from config.problems.errors import Problem
from config.problems.fixes import move_command, remove_command
from config.schema.regions import region_name
from config.schema.translate import schema_of, unknown_key

REGION = "azure-native:location"
PROVIDERS = ("azure-native", "kubernetes")
_READ = ("", "pulumi", *PROVIDERS)
"""Namespaces that are read; the project's own keys come without one."""
_CREDENTIAL = re.compile("secret|password|token|kubeconfig", re.IGNORECASE)


def foreign_problems(keys: Mapping[str, str], project: str, model: type[BaseModel]) -> Iterator[Problem]:
    """Yields keys that no provider has, and keys that are meant for the project or a provider.

    A key is meant for them if its namespace resembles theirs. Other keys may be for another tool that reads the stack
    file (`unread_keys`).

    Args:
        keys: The text of all keys; those of the project without its namespace.
        project: The namespace of the project.
        model: The keys that the project reads.
    """
    own = schema_of(model)["properties"]
    yield from _location_problems(keys)
    for key, text in keys.items():
        namespace, name = _split(key)
        if namespace in PROVIDERS and name not in provider_keys(namespace):
            beside = {each.removeprefix(f"{namespace}:") for each in keys}
            what = f"is a key that the provider {namespace} does not have"
            yield unknown_key((key,), provider_keys(namespace), text, beside, what)
        elif namespace not in _READ and (near := _meant(key, project, own)) and _resembles(namespace, project):
            there = near.removeprefix(f"{project}:")
            fix = remove_command((key,)) if there in keys else move_command((key,), (there,), text)
            yield Problem((key,), "is in a namespace that no provider reads", near, fix, shows_value=False)


def unread_keys(keys: Mapping[str, str], project: str, model: type[BaseModel]) -> Iterator[str]:
    """Yields a warning for each other key in a namespace that neither this program nor its providers read."""
    own = schema_of(model)["properties"]
    for key in keys:
        namespace, near = _split(key)[0], _meant(key, project, own)
        if namespace == "kubernetes":
            yield f"nothing in this program reads the key {key}: its providers use the cluster's own kubeconfig"
        elif namespace not in (*_READ, project) and not (near and _resembles(namespace, project)):
            yield f"nothing in this program reads the key {key}" + (f"; near: {near}" if near else "")


def _location_problems(keys: Mapping[str, str]) -> Iterator[Problem]:
    """Yields the provider's region if it differs from the project's own."""
    provider, own = keys.get(REGION), keys.get("location")
    if provider and own and region_name(provider) != region_name(own):
        what = f"is {provider!r}, but location is {own!r}"
        yield Problem((REGION,), what, "the same region, or one of the two keys", remove_command((REGION,)))


def _split(key: str) -> tuple[str, str]:
    namespace, _, name = key.rpartition(":")
    return namespace, name


def _meant(key: str, project: str, own: Collection[str]) -> str | None:
    """Returns the key that was probably meant."""
    namespace, name = _split(key)
    if close := difflib.get_close_matches(namespace.lower()[:100], [project, *PROVIDERS], 1, cutoff=0.8):
        return f"{close[0]}:{name}"
    if name in own:
        return f"{project}:{name}"
    if name in provider_keys("azure-native"):
        return f"azure-native:{name}"
    return next((f"{project}:{each}" for each in mistyped(name, own)), None)


def _resembles(namespace: str, project: str) -> bool:
    """Returns whether the namespace shares a word with the project or a provider, or is a misspelling of one."""
    known = {word for each in (project, *PROVIDERS) for word in _words(each)}
    close = difflib.get_close_matches(namespace.lower()[:100], [project, *PROVIDERS], 1, cutoff=0.8)
    return bool(close) or not known.isdisjoint(_words(namespace))


def _words(namespace: str) -> set[str]:
    return set(re.split("[^a-z0-9]+", namespace.lower()[:100])) - {"", "on", "native"}


@functools.cache
def provider_keys(namespace: str) -> Collection[str]:
    """The keys of a provider's namespace, as its SDK has them."""
    # Only here: most stacks have none but the region.
    import pulumi_azure_native
    import pulumi_kubernetes

    package = {"azure-native": pulumi_azure_native, "kubernetes": pulumi_kubernetes}[namespace]
    return sorted(_types.input_type_types(package.ProviderArgs))


def is_credential(key: str) -> bool:
    """Whether a provider's key holds what nobody may read, whatever Pulumi says of it."""
    return ":" in key and bool(_CREDENTIAL.search(key))
