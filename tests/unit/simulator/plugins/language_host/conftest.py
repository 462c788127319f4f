from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2_grpc, language_pb2, language_pb2_grpc, resource_pb2, resource_pb2_grpc

from simulator.host.paths import ROOT

LAUNCHER = ROOT / "simulator" / "plugins" / "bin" / "pulumi-language-python"


class Engine(engine_pb2_grpc.EngineServicer):
    """Severities of messages: debug 0, info 1, warning 2, error 3."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, str]] = []

    @property
    def errors(self) -> list[str]:
        return [text for severity, text in self.messages if severity == 3]

    def Log(self, request: Any, _context: grpc.ServicerContext) -> empty_pb2.Empty:
        self.messages.append((request.severity, request.message))
        return empty_pb2.Empty()


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    def __init__(self) -> None:
        self.resources: list[str] = []
        self.outputs: dict[str, Any] = {}

    def SupportsFeature(self, request: Any, _context: grpc.ServicerContext) -> resource_pb2.SupportsFeatureResponse:
        return resource_pb2.SupportsFeatureResponse(hasSupport=request.id == "secrets")

    def RegisterResource(self, request: Any, _context: grpc.ServicerContext) -> resource_pb2.RegisterResourceResponse:
        self.resources.append(f"{request.type} {request.name}")
        return resource_pb2.RegisterResourceResponse(urn=f"urn:pulumi:dev::demo::{request.type}::{request.name}")

    def RegisterResourceOutputs(self, request: Any, _context: grpc.ServicerContext) -> empty_pb2.Empty:
        if "pulumi:pulumi:Stack" in request.urn:
            self.outputs = dict(request.outputs)
        return empty_pb2.Empty()

    def SignalAndWaitForShutdown(self, _request: Any, _context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()


class Deployment:
    def __init__(self, folder: Path, address: str, engine: Engine, monitor: Monitor) -> None:
        self.folder, self.address, self.engine, self.monitor = folder, address, engine, monitor
        environment = {**os.environ, "SIMULATOR_PYTHON": sys.executable}
        self.host = subprocess.Popen([LAUNCHER, address], env=environment, stdout=subprocess.PIPE, text=True)
        assert self.host.stdout
        port = int(self.host.stdout.readline())
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.client = language_pb2_grpc.LanguageRuntimeStub(self.channel)

    def request(self, program: str, config: dict[str, str] | None = None, **more: Any) -> language_pb2.RunRequest:
        (self.folder / "__main__.py").write_text(dedent(program))
        info = language_pb2.ProgramInfo(
            root_directory=str(self.folder), program_directory=str(self.folder), entry_point="."
        )
        return language_pb2.RunRequest(
            project="demo",
            stack="dev",
            organization="organization",
            pwd=str(self.folder),
            config=config or {},
            parallel=4,
            monitor_address=self.address,
            info=info,
            **more,
        )

    def run(self, program: str, config: dict[str, str] | None = None, **more: Any) -> language_pb2.RunResponse:
        response: language_pb2.RunResponse = self.client.Run(self.request(program, config, **more), timeout=60)
        return response

    def printed(self) -> str:
        self.close()
        assert self.host.stdout
        return self.host.stdout.read()

    def close(self) -> None:
        self.channel.close()
        self.host.terminate()
        self.host.wait(timeout=30)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    engine, monitor = Engine(), Monitor()
    server = grpc.server(ThreadPoolExecutor(8))
    engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    running = Deployment(tmp_path, address, engine, monitor)
    yield running
    running.close()
    if running.host.stdout:
        running.host.stdout.close()
    server.stop(grace=None)
