"""The `LanguageRuntime` service: the calls that deploying a program needs (protocol: `pulumi/language.proto`).

Other calls return UNIMPLEMENTED with a workaround. Programs run with this host's interpreter and its locked
dependencies; `runtime.options` of Pulumi.yaml are ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, NoReturn

import grpc
from google.protobuf import empty_pb2

from simulator.plugins import azure_native, kubernetes
from simulator.plugins.language_host import definitions
from simulator.plugins.language_host.settings import ALREADY_REPORTED, ProgramSettings
from simulator.plugins.protocol import language_pb2, language_pb2_grpc, plugin_pb2

_EXECUTOR = "simulator.plugins.language_host.executor"
_INSTALLED = "The simulator's environment has the locked dependencies: nothing to install.\n"


def _unsupported(what: str) -> Any:
    def call(_host: LanguageHost, _request: object, context: grpc.ServicerContext) -> NoReturn:
        _unimplemented(context, what)

    return call


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """One `pulumi` command's host. `Run` blocks until the program has ended."""

    def __init__(self, engine_address: str) -> None:
        self._engine_address = engine_address
        self._programs: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, _context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        self._engine_address = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, _request: empty_pb2.Empty, _context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo()  # no version: the host is part of the checkout, not of a release

    def GetRequiredPlugins(
        self, _request: language_pb2.GetRequiredPluginsRequest, _context: grpc.ServicerContext
    ) -> language_pb2.GetRequiredPluginsResponse:
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(
        self, _request: language_pb2.GetRequiredPackagesRequest, _context: grpc.ServicerContext
    ) -> language_pb2.GetRequiredPackagesResponse:
        """Returns the plugins that `pulumi plugin install` installs. Updates use the emulated plugins instead.

        The official host reads the plugins from pulumi-plugin.json of the packages (pulumi/pulumi v3.246.0,
        sdk/python/cmd/pulumi-language-python/main.go; for updates, pkg/engine/plugins.go, ensurePluginsAreInstalled).
        """
        versions = {"azure-native": azure_native.VERSION, "kubernetes": kubernetes.VERSION}
        packages = [
            plugin_pb2.PackageDependency(kind="resource", name=name, version=version)
            for name, version in versions.items()
        ]
        return language_pb2.GetRequiredPackagesResponse(packages=packages)

    def RuntimeOptionsPrompts(
        self, _request: language_pb2.RuntimeOptionsRequest, _context: grpc.ServicerContext
    ) -> language_pb2.RuntimeOptionsResponse:
        return language_pb2.RuntimeOptionsResponse()

    def About(self, _request: language_pb2.AboutRequest, _context: grpc.ServicerContext) -> language_pb2.AboutResponse:
        return language_pb2.AboutResponse(executable=sys.executable, version=platform.python_version())

    def GetProgramDependencies(
        self, _request: language_pb2.GetProgramDependenciesRequest, _context: grpc.ServicerContext
    ) -> language_pb2.GetProgramDependenciesResponse:
        """Returns all distributions of the environment. They are locked, and include transitive dependencies."""
        found = sorted((each.name, each.version) for each in distributions())
        dependencies = [language_pb2.DependencyInfo(name=name, version=version) for name, version in found]
        return language_pb2.GetProgramDependenciesResponse(dependencies=dependencies)

    def Run(self, request: language_pb2.RunRequest, _context: grpc.ServicerContext) -> language_pb2.RunResponse:
        """Runs the program with this host's stdout and stderr, which the engine shows line by line."""
        command = [sys.executable, "-u", "-m", _EXECUTOR, self._settings(request).to_json(), *request.args]
        program = subprocess.Popen(
            command,
            cwd=request.pwd or request.info.program_directory,
            env=_environment(request),
            start_new_session=True,  # so that child processes of the program end with the program
        )
        with self._lock:
            self._programs.add(program)
        code = program.wait()
        with self._lock:
            self._programs.discard(program)
        if code == 0:
            return language_pb2.RunResponse()
        if code == ALREADY_REPORTED or self._stopped:  # the engine itself reports a cancellation
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=_describe_exit(code))

    def Cancel(self, _request: empty_pb2.Empty, _context: grpc.ServicerContext) -> empty_pb2.Empty:
        self.stop()
        return empty_pb2.Empty()

    def stop(self) -> None:
        """Ends running programs. Loses nothing, because the engine has all state."""
        self._stopped = True
        with self._lock, contextlib.suppress(ProcessLookupError):
            for program in self._programs:
                os.killpg(program.pid, signal.SIGTERM)

    def _settings(self, request: language_pb2.RunRequest) -> ProgramSettings:
        entry = request.info.entry_point or request.program or "."
        return ProgramSettings(
            program=str(Path(request.info.program_directory or request.pwd) / entry),
            project=request.project,
            stack=request.stack,
            organization=request.organization,
            root_directory=request.info.root_directory,
            monitor=request.monitor_address,
            engine=self._engine_address,
            parallel=request.parallel,
            dry_run=request.dryRun,
        )

    def InstallDependencies(
        self, _request: language_pb2.InstallDependenciesRequest, _context: grpc.ServicerContext
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        yield language_pb2.InstallDependenciesResponse(stdout=_INSTALLED.encode())

    RunPlugin = _unsupported("run plugins written in Python")
    Template = _unsupported("start a project from a template")
    GenerateProject = _unsupported("generate projects")
    GeneratePackage = _unsupported("generate SDKs")
    Pack = _unsupported("pack SDKs")
    Link = _unsupported("link SDKs")

    def GenerateProgram(
        self, request: language_pb2.GenerateProgramRequest, context: grpc.ServicerContext
    ) -> language_pb2.GenerateProgramResponse:
        """Generates the program for resources that `pulumi import` found. Does not support `pulumi convert`.

        Only this call imports the SDK.
        """
        from simulator.plugins.language_host import program

        try:
            found = [definition for text in request.source.values() for definition in definitions.read(text)]
            text = program.program(found)
        except definitions.Unreadable as error:
            _unimplemented(context, f"generate this program ({error})")
        return language_pb2.GenerateProgramResponse(source={"__main__.py": text.encode()})


def _environment(request: language_pb2.RunRequest) -> dict[str, str]:
    """Returns the host's variables, and those from which the SDK reads the stack's configuration."""
    return {
        **os.environ,
        "PULUMI_CONFIG": json.dumps(dict(request.config)),
        "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
    }


def _describe_exit(code: int) -> str:
    return f"the program was ended by signal {-code}" if code < 0 else f"the program exited with code {code}"


def _unimplemented(context: grpc.ServicerContext, what: str) -> NoReturn:
    text = f"the simulator's Python language host cannot {what}: install Pulumi's own Python language host."
    context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
    raise AssertionError  # not reached: abort raises
