"""Emulates the config reloader. Adapts the configuration in the operator's Secret to Prometheus on this machine."""

from __future__ import annotations

import gzip
import re
import threading
from pathlib import Path
from typing import Any

import yaml

from simulator.host import files
from simulator.kubelet.programs import PodContext

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_RULES = "/etc/prometheus/rules/"
_POLL_S = 2.0


def run(ctx: PodContext, stop: threading.Event) -> None:
    while not stop.is_set():
        once(ctx)
        stop.wait(_POLL_S)


def once(ctx: PodContext) -> None:
    """Updates the configuration once. Raises ValueError if the Secret's file does not exist."""
    source, result = argument(ctx, "--config-file"), Path(ctx.host_path(argument(ctx, "--config-envsubst-file")))
    text = ctx.file(source)
    if text is None:
        raise ValueError(f"{source} does not exist")
    wanted = yaml.safe_dump(local(yaml.safe_load(_filled(gzip.decompress(text).decode(), ctx)), ctx), sort_keys=False)
    if not result.exists() or result.read_text(encoding="utf-8") != wanted:
        files.replace(result, wanted)
        ctx.log("wrote the configuration")


def _filled(text: str, ctx: PodContext) -> str:
    env = ctx.env()
    return re.sub(r"\$\((\w+)\)", lambda found: env.get(found[1], found[0]), text)


def argument(ctx: PodContext, flag: str) -> str:
    return next(each.partition("=")[2] for each in ctx.argv() if each.startswith(f"{flag}="))


def local(config: Any, ctx: PodContext) -> Any:
    """Returns the configuration for this machine, with local paths, a kubeconfig, and a proxy to pods."""
    found = _with_files(config, ctx)
    for client in (*found.get("scrape_configs", []), *found.get("alerting", {}).get("alertmanagers", [])):
        client["proxy_url"] = ctx.cluster_proxy()
        for discovery in client.get("kubernetes_sd_configs", []):
            discovery["kubeconfig_file"] = ctx.kubeconfig()
    return found


def _with_files(value: Any, ctx: PodContext) -> Any:
    if isinstance(value, dict):
        return {key: _with_files(each, ctx) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_files(each, ctx) for each in value]
    if isinstance(value, str) and value.startswith((_ACCOUNT, _RULES)):
        return ctx.host_path(value)
    return value
