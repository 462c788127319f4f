"""Checks keys in other namespaces, because Pulumi does not report unused keys."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping

from pulumi import _types
from pydantic import BaseModel

from config.data.near import alike, mistyped, resembled
from config.problems.errors import Problem
from config.problems.fixes import Fix, Path, choose_by_hand, path_text, say
from config.rules.plain_secrets import plain_secret
from config.schema.inventory import Inventory
from config.schema.json_schema import protecting, schema_at, schema_of
from config.schema.regions import REGION, region_name
from config.schema.unknown_keys import unknown_key

PROVIDERS = ("azure-native", "kubernetes")
_READ = ("", "pulumi", *PROVIDERS)
_SECRETS = ("clientSecret", "clientCertificatePassword", "oidcToken", "oidcRequestToken")
"""Keys of azure-native that contain a secret, not a file path (its `ProviderArgs`)."""
_SUBSCRIPTION = "azure-native:subscriptionId"
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CREDENTIAL = re.compile("secret|password|token|kubeconfig", re.IGNORECASE)


def foreign_problems(
    keys: Mapping[str, str],
    project: str,
    inventory: Inventory,
    move: Callable[[str, Path], Fix],
    secret: Collection[str] = (),
) -> Iterator[Problem]:
    """Yields problems of region and login keys, of keys that a provider lacks, and of keys with a mistyped namespace.

    A namespace is mistyped if it resembles that of the project or of a provider. Keys in other namespaces may be for
    another tool (`unread_keys`).

    Args:
        keys: The text of all keys, without the project's namespace.
        project: The project's namespace.
        inventory: The settings that the project reads.
        move: Returns the fix that moves a key to its place.
        secret: The encrypted keys.
    """
    model = inventory.stack_file
    yield from _location_problems(keys)
    yield from _login_problems(keys, secret)
    for key, text in keys.items():
        namespace, name = _split(key)
        if namespace in PROVIDERS and name not in provider_keys(namespace):
            beside = {_split(each)[1]: keys[each] for each in keys if _split(each)[0] == namespace}
            what = f"is a key that the provider {namespace} does not have"
            yield unknown_key((key,), provider_keys(namespace), text, beside, what, inventory=inventory)
        elif namespace not in _READ and (near := _meant(key, project, model)) and _resembles(namespace, project, model):
            what = "is in a namespace that no provider reads"
            yield Problem((key,), what, _full(near, project), move(key, near), shows_value=False)


def unread_keys(keys: Mapping[str, str], project: str, model: type[BaseModel]) -> Iterator[str]:
    for key in keys:
        namespace, near = _split(key)[0], _meant(key, project, model)
        if namespace == "kubernetes":
            yield f"this program does not read the key {key}: its providers use the cluster's own kubeconfig"
        elif namespace not in (*_READ, project) and not (near and _resembles(namespace, project, model)):
            yield f"this program does not read the key {key}" + (f"; similar: {_full(near, project)}" if near else "")


def _location_problems(keys: Mapping[str, str]) -> Iterator[Problem]:
    provider, own = keys.get(REGION), keys.get("location")
    if provider and own and region_name(provider) != region_name(own):
        what = f"is {provider!r}, but location is {own!r}"
        fix = choose_by_hand((REGION,), ("location",))
        yield Problem((REGION,), what, "the same region, or one of the two keys", fix)


def _login_problems(keys: Mapping[str, str], secret: Collection[str]) -> Iterator[Problem]:
    for key in sorted({*keys} - {*secret}):
        namespace, name = _split(key)
        if namespace == "azure-native" and name in _SECRETS and keys[key]:
            yield plain_secret((key,))
    subscription = keys.get(_SUBSCRIPTION)
    if subscription and not re.fullmatch(_UUID, subscription, re.IGNORECASE):
        how = f"set {_SUBSCRIPTION} to the ID from: az account show --subscription <name> --query id --output tsv"
        yield Problem((_SUBSCRIPTION,), f"is {subscription!r}, not a subscription ID", "a UUID", say(how))


def _split(key: str) -> tuple[str, str]:
    namespace, _, name = key.rpartition(":")
    return namespace, name


def _meant(key: str, project: str, model: type[BaseModel]) -> Path | None:
    own = schema_of(model)["properties"]
    namespace, name = _split(key)
    if name in schema_at(schema_of(model), (namespace,)).get("properties", {}):
        return (namespace, name)
    if name not in own and (found := resembled(name, tuple(protecting(model)))):
        return protecting(model)[found[0]]
    if close := alike(namespace, [project, *PROVIDERS]):
        return (f"{close[0]}:{name}".removeprefix(f"{project}:"),)
    if name in own:
        return (name,)
    if name in provider_keys("azure-native"):
        return (f"azure-native:{name}",)
    return next(((each,) for each in mistyped(name, own)), None)


def _full(path: Path, project: str) -> str:
    text = path_text(path).replace('["*"]', ".<name>")
    return text if ":" in text else f"{project}:{text}"


def _resembles(namespace: str, project: str, model: type[BaseModel]) -> bool:
    known = {word for each in (project, *PROVIDERS) for word in _words(each)}
    close = alike(namespace, [project, *PROVIDERS])
    return bool(close) or not known.isdisjoint(_words(namespace)) or namespace in schema_of(model)["properties"]


def _words(namespace: str) -> set[str]:
    return set(re.split("[^a-z0-9]+", namespace.lower()[:100])) - {"", "on", "native"}


@functools.cache
def provider_keys(namespace: str) -> Collection[str]:
    # Imported only here: most stacks set only the region.
    import pulumi_azure_native
    import pulumi_kubernetes

    package = {"azure-native": pulumi_azure_native, "kubernetes": pulumi_kubernetes}[namespace]
    return sorted(_types.input_type_types(package.ProviderArgs))


def is_credential(key: str) -> bool:
    """Returns whether a provider's key holds a secret, even if Pulumi does not mark it as one."""
    return ":" in key and bool(_CREDENTIAL.search(key))
