"""Kubernetes manifests in YAML files with placeholders such as `${queue}`."""

from __future__ import annotations

import json
from pathlib import Path
from string import Template
from typing import Any

import yaml

from k8s.objects import Object


def filled(file: Path, **values: object) -> Object:
    """Returns the manifest in a file, with each `${name}` replaced by the value of that name.

    Inserts text unchanged, other values as JSON, which is also valid CEL. Raises KeyError if a placeholder lacks a
    value.
    """
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    manifest: Object = _filled(yaml.safe_load(file.read_text(encoding="utf-8")), texts)
    return manifest


def _filled(part: Any, texts: dict[str, str]) -> Any:
    if isinstance(part, dict):
        return {key: _filled(value, texts) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(each, texts) for each in part]
    return Template(part).substitute(texts) if isinstance(part, str) else part
