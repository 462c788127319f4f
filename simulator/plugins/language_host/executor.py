"""Runs one Pulumi program: `python -m simulator.plugins.language_host.executor '<settings as JSON>' [arguments]`.

Exit codes follow the SDK's convention for language hosts: 0 for success, 32 for an error that the engine has shown (so
the host adds nothing), or the program's `sys.exit` code.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import runpy
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pulumi
import pulumi.runtime

from simulator.plugins.language_host.deferred import defer_annotations
from simulator.plugins.language_host.operator_tools import DeclaredOperators
from simulator.plugins.language_host.settings import ALREADY_REPORTED, ProgramSettings

_THREADS_PER_STEP = 4  # each engine step may block a few SDK threads that call the engine


def run(settings: ProgramSettings, arguments: list[str]) -> int:
    """Runs the program and returns the exit code. Reports an error to the engine once."""
    gc.disable()  # collecting the SDKs' classes takes a quarter of this short process's time
    defer_annotations()
    _configure(settings)
    sys.argv = [settings.program, *arguments]
    # When a resource fails, tasks that wait for it are never awaited. asyncio's warnings would hide the error.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with ThreadPoolExecutor(max(settings.parallel, 1) * _THREADS_PER_STEP) as threads:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.set_default_executor(threads)
        try:
            loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: _run_module(settings)))
        except pulumi.RunError as error:
            pulumi.log.error(str(error))
            return ALREADY_REPORTED
        except Exception as error:  # noqa: BLE001 - every program error is shown to its user
            pulumi.log.error(f"Program failed with an unhandled exception:\n{_own_traceback(error, settings.program)}")
            return ALREADY_REPORTED
        finally:
            loop.close()
    return 0


def _configure(settings: ProgramSettings) -> None:
    runtime = pulumi.runtime
    runtime.set_all_config(runtime.get_config_env(), runtime.get_config_secret_keys_env())
    runtime.configure(
        runtime.Settings(
            project=settings.project,
            stack=settings.stack,
            organization=settings.organization,
            root_directory=settings.root_directory,
            monitor=settings.monitor,
            engine=settings.engine,
            parallel=settings.parallel,
            dry_run=settings.dry_run,
        )
    )


def _run_module(settings: ProgramSettings) -> None:
    main = Path(settings.program)
    if main.is_dir() and not (main / "__main__.py").exists():
        raise pulumi.RunError(f"no Pulumi program in {main}: it has no __main__.py")
    operators = DeclaredOperators()
    runpy.run_path(settings.program, run_name="__main__")
    operators.make_tools(dry_run=settings.dry_run)


def _own_traceback(error: Exception, program: str) -> str:
    main = Path(program).resolve()
    root = main if main.is_dir() else main.parent
    report = traceback.TracebackException.from_exception(error)
    files = [Path(frame.filename) for frame in report.stack]
    first = next((i for i, file in enumerate(files) if file.is_absolute() and file.is_relative_to(root)), 0)
    report.stack = traceback.StackSummary.from_list(list(report.stack)[first:])
    return "".join(report.format())


if __name__ == "__main__":
    code = run(ProgramSettings(**json.loads(sys.argv[1])), sys.argv[2:])
    gc.freeze()  # skips the collection at exit too
    sys.exit(code)
