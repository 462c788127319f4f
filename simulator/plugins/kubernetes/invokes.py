"""Functions of the plugin. Only decoding YAML is here; the others serve components that this stand-in does not have."""

from __future__ import annotations

import yaml

from simulator.plugins.errors import PluginError
from simulator.plugins.kubernetes.kinds import kind_of
from simulator.plugins.kubernetes.session import Session
from simulator.plugins.marshal import Properties, decode, encode, reveal
from simulator.plugins.protocol import provider_pb2

_DECODE = "kubernetes:yaml:decode"


def invoke(session: Session, request: provider_pb2.InvokeRequest) -> provider_pb2.InvokeResponse:
    if request.tok != _DECODE:
        raise PluginError(
            f'the function "{request.tok}" needs the official kubernetes plugin; this stand-in has {_DECODE} only. '
            "Charts install with helm.v3.Release, and manifests as resources of their kinds"
        )
    arguments = reveal(decode(request.args))
    if not isinstance(arguments.get("text"), str):
        raise PluginError("missing required field 'text' of type string")
    result = _decode(session, arguments["text"], str(arguments.get("defaultNamespace") or ""))
    return provider_pb2.InvokeResponse(**{"return": encode({"result": result})})


def _decode(session: Session, text: str, namespace: str) -> list[Properties]:
    """The objects of a YAML text, with `namespace` where they are namespaced and have none."""
    try:
        objects = [obj for obj in yaml.safe_load_all(text) if obj]
    except yaml.YAMLError as error:
        raise PluginError(f"the text is not YAML: {error}") from error
    for obj in objects:
        if namespace and session.namespaced(kind_of(obj)):
            obj.setdefault("metadata", {}).setdefault("namespace", namespace)
    return objects
