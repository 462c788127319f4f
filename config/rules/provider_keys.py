"""Keys of other namespaces than the project's: Pulumi says nothing of those that nobody reads."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Collection, Iterator, Mapping

from pulumi import _types

from config.problems.errors import Problem
from config.problems.fixes import move_command, remove_command
from config.schema.translate import unknown_key

REGION = "azure-native:location"
PROVIDERS = ("azure-native", "kubernetes")
_CREDENTIAL = re.compile("secret|password|token|kubeconfig", re.IGNORECASE)


def foreign_problems(keys: Mapping[str, str], project: str) -> Iterator[Problem]:
    """Keys that the namespaces' providers do not have, and namespaces that are nearly the project's or a provider's.

    Others may be for whatever else reads the stack file.
    """
    for key, text in keys.items():
        namespace, colon, name = key.partition(":")
        if not colon:
            continue
        if namespace in PROVIDERS and name not in provider_keys(namespace):
            beside = {each.removeprefix(f"{namespace}:") for each in keys}
            what = f"is a key that the provider {namespace} does not have"
            yield unknown_key((key,), provider_keys(namespace), text, beside, what)
        elif namespace != "pulumi" and namespace not in PROVIDERS:
            for near in difflib.get_close_matches(namespace.lower()[:100], [project, *PROVIDERS], 1, cutoff=0.8):
                there = name if near == project else f"{near}:{name}"
                fix = remove_command((key,)) if there in keys else move_command((key,), (there,), text)
                yield Problem((key,), "is in a namespace that nobody reads", f"{near}:{name}", fix, shows_value=False)


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
