"""Adds the stack's tags to every Azure resource, and explains Azure's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pulumi

from config.problems.fixes import Edit, Fix
from config.rules.azure_errors import Place, explain
from config.schema.models import Settings

_TYPES = "azure-native:"
_POOL = "pool-"


def prepare_all(settings: Settings) -> None:
    """Registers the tags and the error hook for resources that are declared later."""
    hooks = pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("explain-azure-error", _explainer(settings))])

    def prepare(declared: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not declared.type_.startswith(_TYPES):
            return None
        props = tagged(declared.props, settings.tags)
        opts = pulumi.ResourceOptions.merge(declared.opts, pulumi.ResourceOptions(hooks=hooks))
        return pulumi.ResourceTransformationResult(props, opts)

    pulumi.runtime.register_stack_transformation(prepare)


def tagged(props: Any, tags: Mapping[str, str]) -> Any:
    """Returns a resource's inputs with the stack's tags, if its type has tags. The inputs' own tags take precedence."""
    inputs = props if isinstance(props, dict) else vars(props)
    if tags and "tags" in inputs:
        inputs["tags"] = {**tags, **(inputs["tags"] or {})}
    return props


def _explainer(settings: Settings) -> Callable[[pulumi.ErrorHookArgs], bool]:
    printed: set[tuple[str, str]] = set()

    def hook(args: pulumi.ErrorHookArgs) -> bool:
        explanation = explain(args.errors[0], _place(settings, args.name))
        if explanation and (args.urn, explanation.meaning) not in printed:
            printed.add((args.urn, explanation.meaning))
            pulumi.log.warn(f"{args.name}: {explanation}")
        return False

    return hook


def _place(settings: Settings, resource: str) -> Place:
    names, key = settings.names, resource.removeprefix(_POOL)
    place = Place(settings.stack, settings.location, names.resource_group, names.cluster, tags=tuple(settings.tags))
    pool = settings.gpu_pools().get(key) if resource.startswith(_POOL) else None
    if pool is None:
        return place
    managed = Fix(tuple(_managed_disk(settings, key, pool.disk.gb))).text(settings.stack)
    return replace(place, pool=key, managed_disk=managed)


def _managed_disk(settings: Settings, key: str, gb: int) -> Iterator[Edit]:
    path, usual = ("pools", key), type(settings).model_fields["node_count"].default
    if settings.vm_sku is not None:
        yield from (Edit((*path, "vmSku"), settings.vm_sku), Edit((*path, "count"), settings.node_count))
        yield Edit(("vmSku",))
        if settings.node_count != usual:  # the stack file only has the key for another value
            yield Edit(("nodeCount",))
    yield from (Edit((*path, "osDiskGb"), gb), Edit((*path, "osDiskType"), "Managed"))
