"""The config reloader of a pod: what the operator has put into a Secret, as the pod's program can use it here."""

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
    """Keeps it up to date, until told to stop."""
    while not stop.is_set():
        once(ctx)
        stop.wait(_POLL_S)


def once(ctx: PodContext) -> None:
    """Raises ValueError where the operator has written nothing that can be read."""
    source, result = told(ctx, "--config-file"), Path(ctx.host_path(told(ctx, "--config-envsubst-file")))
    text = ctx.file(source)
    if text is None:
        raise ValueError(f"there is no {source}")
    wanted = yaml.safe_dump(local(yaml.safe_load(_filled(gzip.decompress(text).decode(), ctx)), ctx), sort_keys=False)
    if not result.exists() or result.read_text(encoding="utf-8") != wanted:
        files.replace(result, wanted)
        ctx.log("wrote the configuration")


def _filled(text: str, ctx: PodContext) -> str:
    """With the container's variables where it names them, `$(SHARD)`."""
    env = ctx.env()
    return re.sub(r"\$\((\w+)\)", lambda found: env.get(found[1], found[0]), text)


def told(ctx: PodContext, flag: str) -> str:
    return next(each.partition("=")[2] for each in ctx.argv() if each.startswith(f"{flag}="))


def local(config: Any, ctx: PodContext) -> Any:
    """The configuration as it holds here: files where they lie on this machine, the API server by a kubeconfig, and
    what is scraped, or told of alerts, through the proxy into the cluster.
    """
    found = _with_files(config, ctx)
    for asked in (*found.get("scrape_configs", []), *found.get("alerting", {}).get("alertmanagers", [])):
        asked["proxy_url"] = ctx.cluster_proxy()
        for discovery in asked.get("kubernetes_sd_configs", []):
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
