"""Runs the program or a component with Pulumi's mocks, and records resources and outputs."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pulumi
from pulumi.runtime import mocks, rpc

from simulator.host.paths import ROOT
from tests.support.mocked_azure import ORGANIZATION, SECRET, Azure
from tests.support.settings import as_engine


@dataclass(frozen=True)
class Registered:
    """Dependencies and parent are `<type> <name>`."""

    type: str
    name: str
    custom: bool
    inputs: dict[str, Any]
    parent: str
    dependencies: tuple[str, ...]
    provider: str
    request: Any = field(compare=False, repr=False)


class Recorder(mocks.MockMonitor):
    def __init__(self, azure: Azure) -> None:
        super().__init__(azure)
        self.azure = azure
        self.registered: list[Registered] = []
        self.outputs: dict[str, Any] = {}
        self.shown: dict[str, Any] = {}
        """Outputs with secrets, as in `pulumi stack output --show-secrets`."""

    def RegisterResource(self, request: Any) -> Any:
        if request.type != "pulumi:pulumi:Stack":
            self.registered.append(_registered(request))
        return super().RegisterResource(request)  # type: ignore[no-untyped-call]

    def one(self, type_suffix: str, name: str | None = None) -> Registered:
        found = [r for r in self.registered if r.type.endswith(type_suffix) and name in (None, r.name)]
        assert len(found) == 1, [f"{r.type} {r.name}" for r in self.registered]
        return found[0]

    def names(self, type_suffix: str) -> list[str]:
        return sorted(r.name for r in self.registered if r.type.endswith(type_suffix))


def deploy(
    declare: Callable[[], object], azure: Azure | None = None, stack: str = "test", *, preview: bool = False
) -> Recorder:
    recorder = Recorder(azure or Azure())
    pulumi.runtime.set_mocks(
        recorder.azure, "ai-on-aks", stack, preview=preview, monitor=recorder, organization=ORGANIZATION
    )

    # The SDK keeps the previous program's stack, with outputs and transformations.
    root = pulumi.runtime.get_root_resource()
    getattr(root, "outputs", {}).clear()
    getattr(root, "_transformations", []).clear()

    async def outputs() -> None:
        root = pulumi.runtime.get_root_resource()
        for name, value in getattr(root, "outputs", {}).items():
            output = pulumi.Output.from_input(value)
            recorder.shown[name] = await output.future()
            recorder.outputs[name] = SECRET if await output.is_secret() else recorder.shown[name]

    def run() -> pulumi.Output[None]:
        declare()
        return pulumi.Output.from_input(outputs())

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return recorder


def program(
    settings: Mapping[str, Any],
    azure: Azure | None = None,
    stack: str = "test",
    *,
    secret: Collection[str] = (),
    preview: bool = False,
) -> Recorder:
    """Returns the resources and outputs of the program with a stack file's settings.

    Keys without a namespace get the project's. All login programs are on PATH, and `azure.fetch` is Resource Manager.
    `secret` names encrypted values.
    """
    pulumi.runtime.set_all_config(as_engine(settings), [f"ai-on-aks:{key}" for key in secret])
    azure = azure or Azure()
    programs = mock.patch("components.preflight.checks.which", lambda name: f"/usr/bin/{name}")
    fetch = mock.patch("components.preflight.arm.fetch", azure.fetch)
    collector = mock.patch("gc.disable")  # the process of the tests outlives the program
    dates = mock.patch("config.rules.support_end.support_warnings", return_value=())  # they depend on the day
    answers, is_in = (
        mock.patch(f"components.access.inside.{name}", return_value=azure.inside) for name in ("answers", "is_in")
    )
    with programs, fetch, collector, dates, answers, is_in:
        return deploy(
            lambda: runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__"), azure, stack, preview=preview
        )


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
    """Returns floats like 1.0 as int, because protobuf has only floats, and hides secrets."""
    if isinstance(value, dict):
        return SECRET if rpc._special_sig_key in value else {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
