"""What an NFD worker finds on its node and the labels it asks for: pure functions of hardware and configuration.

Sources simulated: kernel, pci, system. Attribute and label names are NFD's (docs of v0.19, "Feature labels").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from diagnosis.cluster import Object
from simulator.world.hardware import NodeHardware

FEATURE_NS = "feature.node.kubernetes.io"
PCI_FIELDS = ("class", "vendor", "device", "subsystem_vendor", "subsystem_device")
"""In the order in which labels join them."""
SOURCES = ("kernel", "pci", "system")


class ConfigError(ValueError):
    """The worker's configuration cannot be used; the text says where."""


@dataclass(frozen=True)
class WorkerConfig:
    """What of nfd-worker.conf the simulator honours, with NFD's defaults."""

    feature_sources: Sequence[str] = ("all",)
    label_sources: Sequence[str] = ("all",)
    pci_classes: Sequence[str] = ("03", "0b40", "12")
    pci_fields: Sequence[str] = ("class", "vendor")
    no_publish: bool = False
    ignored: Sequence[str] = field(default=())
    """Sections that have no effect in the simulator; the worker says so in its log."""


def parse_config(text: str) -> WorkerConfig:
    """Reads nfd-worker.conf; raises ConfigError."""
    try:
        config = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"nfd-worker.conf is no YAML: {error}") from error
    if not isinstance(config, dict):
        raise ConfigError("nfd-worker.conf must be a map")
    core, sources = config.get("core") or {}, config.get("sources") or {}
    pci = sources.get("pci") or {}
    default = WorkerConfig()
    fields = [name for name in PCI_FIELDS if name in pci.get("deviceLabelFields", default.pci_fields)]
    return WorkerConfig(
        feature_sources=core.get("featureSources", default.feature_sources),
        label_sources=core.get("labelSources", default.label_sources),
        pci_classes=[str(item).lower() for item in pci.get("deviceClassWhitelist", default.pci_classes)],
        pci_fields=fields or default.pci_fields,
        no_publish=bool(core.get("noPublish", False)),
        ignored=[f"sources.{name}" for name in sorted(sources) if name != "pci"],
    )


def discover(hardware: NodeHardware, config: WorkerConfig) -> Object:
    """The spec of the node's NodeFeature object."""
    enabled = [source for source in SOURCES if is_enabled(source, config.feature_sources)]
    attributes: dict[str, Object] = {}
    instances: dict[str, Object] = {}
    if "kernel" in enabled:
        attributes["kernel.version"] = {"elements": kernel_version(hardware.kernel)}
    if "system" in enabled:
        attributes["system.osrelease"] = {"elements": os_release(hardware.os_id, hardware.os_version)}
        attributes["system.name"] = {"elements": {"nodename": hardware.node}}
    if "pci" in enabled:
        instances["pci.device"] = {"elements": [{"attributes": device} for device in pci_devices(hardware)]}
    features = {"flags": {}, "attributes": attributes, "instances": instances}
    return {"features": features, "labels": labels(hardware, config, enabled)}


def labels(hardware: NodeHardware, config: WorkerConfig, enabled: Sequence[str]) -> dict[str, str]:
    """Labels of the enabled sources, with their full names."""
    found: dict[str, str] = {}
    wanted = [source for source in enabled if is_enabled(source, config.label_sources)]
    if "kernel" in wanted:
        found |= {f"kernel-version.{part}": value for part, value in kernel_version(hardware.kernel).items()}
    if "system" in wanted:
        release = os_release(hardware.os_id, hardware.os_version)
        found |= {f"system-os_release.{key}": value for key, value in release.items()}
    if "pci" in wanted:
        for device in pci_devices(hardware):
            if any(device["class"].startswith(prefix) for prefix in config.pci_classes):
                name = "_".join(device.get(part, "") for part in config.pci_fields)
                found[f"pci-{name}.present"] = "true"
    return {f"{FEATURE_NS}/{name}": value for name, value in sorted(found.items())}


def is_enabled(source: str, selection: Sequence[str]) -> bool:
    """NFD's source lists: names, `all`, and `-name` to leave one out."""
    return f"-{source}" not in selection and ("all" in selection or source in selection)


def kernel_version(release: str) -> dict[str, str]:
    """`6.8.0-1030-azure` -> full, major, minor and revision."""
    numbers = [*release.partition("-")[0].split("."), "", ""]
    return {"full": release, "major": numbers[0], "minor": numbers[1], "revision": numbers[2]}


def os_release(os_id: str, version: str) -> dict[str, str]:
    major, _, minor = version.partition(".")
    return {"ID": os_id, "VERSION_ID": version, "VERSION_ID.major": major, "VERSION_ID.minor": minor}


def pci_devices(hardware: NodeHardware) -> list[dict[str, str]]:
    """Every function on the bus: rules see them all, the whitelist only limits labels."""
    return [{"class": pci.pci_class, "vendor": pci.vendor, "device": pci.device} for pci in hardware.pci]


def merge(specs: Sequence[Mapping[str, Any]]) -> Object:
    """One spec of several NodeFeature objects of a node: later labels and elements win, instances add up."""
    labels: dict[str, str] = {}
    merged: Object = {"flags": {}, "attributes": {}, "instances": {}}
    for spec in specs:
        labels |= spec.get("labels") or {}
        for kind, features in (spec.get("features") or {}).items():
            for name, feature in (features or {}).items():
                elements = feature.get("elements") or ([] if kind == "instances" else {})
                known = merged[kind].setdefault(name, {"elements": [] if kind == "instances" else {}})
                if kind == "instances":
                    known["elements"] = [*known["elements"], *elements]
                else:
                    known["elements"] = known["elements"] | elements
    return {"features": merged, "labels": labels}
