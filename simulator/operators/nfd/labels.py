"""Which labels and annotations NFD's master gives a node: pure functions of its features, the rules and the config."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from diagnosis.cluster import Object
from simulator.operators.nfd.features import FEATURE_NS, ConfigError, merge
from simulator.operators.nfd.rules import evaluate

ANNOTATION_NS = "nfd.node.kubernetes.io"
PROFILE_NS = "profile.node.kubernetes.io"


@dataclass(frozen=True)
class MasterConfig:
    """What of nfd-master's file and flags the simulator honours."""

    instance: str = ""
    extra_namespaces: Sequence[str] = ()
    denied_namespaces: Sequence[str] = ()
    whitelist: str = ""

    @property
    def annotation_ns(self) -> str:
        """Several NFD instances keep their bookkeeping apart by a prefix."""
        return f"{self.instance}.{ANNOTATION_NS}" if self.instance else ANNOTATION_NS

    @property
    def tracking(self) -> str:
        return f"{self.annotation_ns}/feature-labels"

    @property
    def tracking_annotations(self) -> str:
        return f"{self.annotation_ns}/feature-annotations"


@dataclass
class Wanted:
    """What a node should carry, and what was refused."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def parse_master_config(text: str, flags: Mapping[str, str]) -> MasterConfig:
    """Flags win over nfd-master.conf; raises ConfigError."""
    try:
        config = yaml.safe_load(text) or {}
        re.compile(config.get("labelWhiteList", ""))
    except (yaml.YAMLError, re.error) as error:
        raise ConfigError(f"nfd-master.conf cannot be read: {error}") from error
    extra, denied = flags.get("-extra-label-ns"), flags.get("-deny-label-ns")
    return MasterConfig(
        instance=flags.get("-instance", ""),
        extra_namespaces=extra.split(",") if extra else config.get("extraLabelNs") or (),
        denied_namespaces=denied.split(",") if denied else config.get("denyLabelNs") or (),
        whitelist=config.get("labelWhiteList", ""),
    )


def wanted(specs: Sequence[Mapping[str, Any]], rules: Iterable[Mapping[str, Any]], config: MasterConfig) -> Wanted:
    """For one node, from the specs of its NodeFeatures and the rules of all NodeFeatureRules, in order."""
    if not specs:
        return Wanted()  # no worker has spoken for this node: NFD labels nothing
    spec = merge(specs)
    given = evaluate(rules, spec["features"])
    result = Wanted(annotations={prefixed(key): value for key, value in given.annotations.items()}, errors=given.errors)
    asked = {prefixed(k): v for k, v in spec["labels"].items()} | {prefixed(k): v for k, v in given.labels.items()}
    for name, value in sorted(asked.items()):
        try:
            _check_name(name, config)
            result.labels[name] = _resolved(value, spec["features"])
        except ValueError as error:
            result.errors.append(f"ignoring label {name}: {error}")
    return result


def prefixed(name: str) -> str:
    return name if "/" in name else f"{FEATURE_NS}/{name}"


def node_patch(node: Object, want: Wanted, config: MasterConfig) -> Object:
    """The merge patch that gives a node its labels and takes back what NFD gave before; empty if none is needed."""
    metadata = node["metadata"]
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    new_annotations = dict(want.annotations)
    for key, names in ((config.tracking, want.labels), (config.tracking_annotations, want.annotations)):
        if names:
            new_annotations[key] = ",".join(sorted(name.removeprefix(f"{FEATURE_NS}/") for name in names))
    old_annotations = [
        *_tracked(annotations, config.tracking_annotations),
        config.tracking,
        config.tracking_annotations,
    ]
    patch = {
        "labels": _difference(labels, want.labels, _tracked(annotations, config.tracking)),
        "annotations": _difference(annotations, new_annotations, old_annotations),
    }
    changed = {key: value for key, value in patch.items() if value}
    return {"metadata": changed} if changed else {}


def _difference(live: Mapping[str, str], want: Mapping[str, str], old: Iterable[str]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {name: None for name in old if name in live and name not in want}
    return changes | {name: value for name, value in want.items() if live.get(name) != value}


def _tracked(annotations: Mapping[str, str], key: str) -> list[str]:
    return [prefixed(name) for name in annotations.get(key, "").split(",") if name]


def _resolved(value: str, features: Mapping[str, Any]) -> str:
    """`@feature.element` stands for the value of an attribute."""
    if not value.startswith("@"):
        return value
    domain, _, rest = value[1:].partition(".")
    feature, _, element = rest.partition(".")
    elements = features["attributes"].get(f"{domain}.{feature}", {}).get("elements", {})
    if element not in elements:
        raise ValueError(f"{value} names no attribute of this node")
    return str(elements[element])


def _check_name(name: str, config: MasterConfig) -> None:
    """NFD's own namespaces are free, others under kubernetes.io and denied ones need extraLabelNs."""
    namespace, _, base = name.rpartition("/")
    own = any(namespace == ns or namespace.endswith(f".{ns}") for ns in (FEATURE_NS, PROFILE_NS))
    reserved = not own and (namespace == "kubernetes.io" or namespace.endswith(".kubernetes.io"))
    denied = any(
        namespace.endswith(entry[1:]) if entry.startswith("*.") else namespace == entry
        for entry in config.denied_namespaces
    )
    if (reserved or denied) and namespace not in config.extra_namespaces:
        raise ValueError(f"namespace {namespace!r} is not allowed; add it to master.config.extraLabelNs")
    if config.whitelist and not re.search(config.whitelist, base):
        raise ValueError(f"{base} does not match labelWhiteList {config.whitelist!r}")
