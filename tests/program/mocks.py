"""Runs the whole program, or a component, against Pulumi's mocks and records what it registers."""

from __future__ import annotations

import base64
import json
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pulumi
import yaml

ROOT = Path(__file__).resolve().parents[2]
SUBSCRIPTION = "00000000-0000-0000-0000-00000000000a"
DEPLOYER = "00000000-0000-0000-0000-00000000000b"
_USER_KUBECONFIG = {
    "users": [
        {"name": "user", "user": {"exec": {"command": "kubelogin", "args": ["get-token", "--login", "devicecode"]}}}
    ]
}


class Recorder(pulumi.runtime.Mocks):
    """Echoes inputs as outputs, and keeps every registration in its order."""

    def __init__(self) -> None:
        self.registered: list[pulumi.runtime.MockResourceArgs] = []
        self.calls: list[pulumi.runtime.MockCallArgs] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        self.registered.append(args)
        return _identity(args), dict(args.inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        self.calls.append(args)
        if args.token == "azure-native:authorization:getClientConfig":
            return {"clientId": "", "objectId": DEPLOYER, "subscriptionId": SUBSCRIPTION, "tenantId": ""}, []
        kubeconfig = _USER_KUBECONFIG if "UserCredentials" in args.token else {"users": [{"name": "admin", "user": {}}]}
        text = yaml.safe_dump(kubeconfig)
        return {"kubeconfigs": [{"name": "kubeconfig", "value": base64.b64encode(text.encode()).decode()}]}, []

    def one(self, type_suffix: str, name: str | None = None) -> pulumi.runtime.MockResourceArgs:
        """The only resource of a type that ends so (and of that name)."""
        found = [r for r in self.registered if r.typ.endswith(type_suffix) and name in (None, r.name)]
        assert len(found) == 1, [(r.typ, r.name) for r in self.registered]
        return found[0]

    def names(self, type_suffix: str) -> list[str]:
        """Names of the resources whose type ends so, in the order of registration."""
        return [r.name for r in self.registered if r.typ.endswith(type_suffix)]


def _identity(args: pulumi.runtime.MockResourceArgs) -> str:
    if args.typ.startswith("azure-native:"):
        return f"/subscriptions/{SUBSCRIPTION}/{args.typ.split(':')[-1]}/{args.name}"
    metadata = args.inputs.get("metadata", {})
    return "/".join(filter(None, [metadata.get("namespace"), metadata.get("name")])) or args.name


def deploy(declare: Callable[[], object]) -> Recorder:
    """What `declare` registers, once all of it has settled."""
    recorder = Recorder()
    pulumi.runtime.set_mocks(recorder, project="ai-on-aks", stack="test", preview=False)

    def run() -> None:
        declare()

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return recorder


def program(settings: Mapping[str, Any]) -> Recorder:
    """What the program registers with these settings, given as in a stack file below the project's name."""
    text = {f"ai-on-aks:{key}": v if isinstance(v, str) else json.dumps(v) for key, v in settings.items()}
    pulumi.runtime.set_all_config(text)
    return deploy(lambda: runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__"))
