"""Runs the whole program, or a component, against Pulumi's mocks and records what it registers."""

from __future__ import annotations

import base64
import json
import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import yaml
from pulumi.runtime import mocks, rpc

ROOT = Path(__file__).resolve().parents[2]
SUBSCRIPTION = "00000000-0000-0000-0000-00000000000a"
DEPLOYER = "00000000-0000-0000-0000-00000000000b"
SECRET = "[secret]"
KUBELET = "00000000-0000-0000-0000-00000000000c"
_NAMES = (
    "agentPoolName", "roleAssignmentName", "containerName", "accountName", "registryName", "resourceName",
    "resourceGroupName",
)  # fmt: skip
"""Inputs that name a resource, the innermost first."""
_READ = {"ManagedCluster": {"identityProfile": {"kubeletidentity": {"objectId": KUBELET}}}}
"""What Azure itself adds to a resource."""
_LOGIN = {"exec": {"command": "kubelogin", "args": ["get-token", "--login", "devicecode"]}}
_KUBECONFIGS = {
    "Admin": {"users": [{"name": "admin", "user": {}}]},
    "User": {"users": [{"name": "user", "user": _LOGIN}]},
}


@dataclass(frozen=True)
class Registered:
    """One resource as the program asked for it; dependencies and parent are given as `<type> <name>`."""

    type: str
    name: str
    custom: bool
    inputs: dict[str, Any]
    parent: str
    dependencies: tuple[str, ...]
    provider: str
    request: Any = field(compare=False, repr=False)
    """The whole request, for options that few tests look at."""


class Recorder(mocks.MockMonitor):
    """An engine that echoes inputs as outputs and keeps every registration."""

    def __init__(self) -> None:
        super().__init__(_Azure())
        self.registered: list[Registered] = []
        self.outputs: dict[str, Any] = {}

    def RegisterResource(self, request: Any) -> Any:
        if request.type != "pulumi:pulumi:Stack":
            self.registered.append(_registered(request))
        return super().RegisterResource(request)  # type: ignore[no-untyped-call]

    def one(self, type_suffix: str, name: str | None = None) -> Registered:
        """The only resource of a type that ends so (and of that name)."""
        found = [r for r in self.registered if r.type.endswith(type_suffix) and name in (None, r.name)]
        assert len(found) == 1, [f"{r.type} {r.name}" for r in self.registered]
        return found[0]

    def names(self, type_suffix: str) -> list[str]:
        """Names of the resources whose type ends so."""
        return sorted(r.name for r in self.registered if r.type.endswith(type_suffix))


class _Azure(pulumi.runtime.Mocks):
    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs = args.inputs
        if args.typ.startswith("azure-native:"):
            name = next(inputs[key] for key in _NAMES if key in inputs)
            kind = args.typ.split(":")[-1]
            return f"/subscriptions/{SUBSCRIPTION}/{kind}/{name}", {**inputs, "name": name, **_READ.get(kind, {})}
        metadata = inputs.get("metadata", {})
        return "/".join(filter(None, [metadata.get("namespace"), metadata.get("name")])) or args.name, dict(inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        if args.token == "azure-native:authorization:getClientConfig":
            return {"clientId": "", "objectId": DEPLOYER, "subscriptionId": SUBSCRIPTION, "tenantId": ""}, []
        text = yaml.safe_dump(next(config for kind, config in _KUBECONFIGS.items() if kind in args.token))
        return {"kubeconfigs": [{"name": "kubeconfig", "value": base64.b64encode(text.encode()).decode()}]}, []


def deploy(declare: Callable[[], object]) -> Recorder:
    """What `declare` registers, once all of it has settled."""
    recorder = Recorder()
    pulumi.runtime.set_mocks(_Azure(), project="ai-on-aks", stack="test", preview=False, monitor=recorder)

    async def outputs() -> None:
        stack = pulumi.runtime.get_root_resource()
        for name, value in getattr(stack, "outputs", {}).items():
            output = pulumi.Output.from_input(value)
            recorder.outputs[name] = SECRET if await output.is_secret() else await output.future()

    def run() -> pulumi.Output[None]:
        declare()
        return pulumi.Output.from_input(outputs())

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return recorder


def program(settings: Mapping[str, Any]) -> Recorder:
    """What the program registers with these settings, given as in a stack file below the project's name."""
    text = {f"ai-on-aks:{key}": v if isinstance(v, str) else json.dumps(v) for key, v in settings.items()}
    pulumi.runtime.set_all_config(text)
    return deploy(lambda: runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__"))


def _registered(request: Any) -> Registered:
    return Registered(
        type=request.type,
        name=request.name,
        custom=request.custom,
        inputs=_plain(rpc.deserialize_properties(request.object)),
        parent=_short(request.parent),
        dependencies=tuple(sorted(_short(urn) for urn in request.dependencies)),
        provider=_short(request.provider.rpartition("::")[0]),
        request=request,
    )


def _short(urn: str) -> str:
    if not urn:
        return ""
    *_, types, name = urn.split("::")
    return f"{types.rpartition('$')[2]} {name}"


def _plain(value: Any) -> Any:
    """Whole numbers as int, which protobuf has not, and secrets hidden."""
    if isinstance(value, dict):
        return SECRET if rpc._special_sig_key in value else {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
