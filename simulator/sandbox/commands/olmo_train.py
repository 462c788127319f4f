"""`scripts/train.py` of OLMo under the simulated torchrun: its checks, log and checkpoints; the loss is invented."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from simulator.sandbox.library import olmo_config, training, view
from simulator.sandbox.library.olmo_config import Config, ConfigError
from simulator.sandbox.library.olmo_log import Checkpoints, Log
from simulator.sandbox.library.torch_agents import DOCUMENT, POLL_SECONDS, STARTED, ProgramError, Team
from simulator.sandbox.library.torch_ranks import Communicator, initialise, refuse

FASTER = 50
"""How much faster than on real Azure the first steps go; later ones take their time: nobody waits weeks."""
FAST_STEPS = 200
PATIENCE_S = 10.0
"""How long ranks wait for a folder that rank 0 has made, as on real Azure (olmo/util.py, wait_for).

A mount shows it here in a second or two, or more on a loaded machine; one that remembers names after 12 (csi/mount.py).
"""


def main(_: list[str]) -> int:
    """Started without torchrun."""
    print(
        "ValueError: Error initializing torch.distributed: environment variable RANK expected, but not set",
        file=sys.stderr,
    )
    return 1


def prepare(arguments: list[str]) -> Config:
    """Each node by itself: reads config and data. Raises ProgramError."""
    log = Log(view.load().me.hostname)
    if not arguments:
        refuse("OLMoCliError", "Usage: scripts/train.py [CONFIG_PATH] [OPTIONS]")
    try:
        config = olmo_config.load(Path(arguments[0]), arguments[1:])
    except ConfigError as error:
        refuse("OLMoConfigurationError", str(error))
    except OSError as error:
        _uncaught(log, error)
    for path in (*config.data, *config.evaluation_data):
        if path.startswith(("http:", "https:")):
            _uncaught(log, ConnectionError(f"Failed to resolve '{path.split('/')[2]}'"))
        try:
            Path(path).stat()
        except OSError as error:
            _uncaught(log, error)
    return config


def train(config: Config, team: Team) -> None:
    """All ranks, on the first node. Raises ProgramError, and AgentError when a node goes away."""
    pods = team.check()
    log = Log(pods[0].hostname)
    log.info("train:410", "CLI environment prepared")
    _check_settings(config, len(pods) * team.launch.per_node)
    communicator = initialise(team)
    checkpoints = Checkpoints(config, communicator.ranks, log, lambda folder: _show(team, folder))
    try:
        _claim_folder(config, checkpoints, log)
        everything, without = config.parameters
        log.info("train:139", "Building model...")
        log.info("train:141", f"Total number of parameters: {everything:,d}")
        log.info("train:142", f"Number of non-embedding parameters: {without:,d}")
        first = _restore(config, checkpoints, log)
        log.info("train:379", "Starting training...")
        if short := training.out_of_memory(config.state_bytes / communicator.ranks, communicator.gpu_bytes):
            refuse("torch.OutOfMemoryError", short)
        last = _steps(config, team, communicator, checkpoints, log, first)
        _save_last(config, checkpoints, last)
    except OSError as error:
        _uncaught(log, error)
    log.info("train:381", "Training complete")


def follow(team: Team, asked: Mapping[str, Any]) -> None:
    """The other ranks of this node: they wait for the folder that the first one has made. Raises ProgramError."""
    number, folder = asked.get("folder", (0, ""))
    if number == team.told("seen", 0):
        return
    until = time.monotonic() + PATIENCE_S
    while not Path(folder).exists():
        if time.monotonic() > until:
            _uncaught(Log(view.load().me.hostname), TimeoutError("Waiting for checkpoint directory timed out"))
        time.sleep(POLL_SECONDS)
    team.tell(STARTED, seen=number)


def _show(team: Team, folder: Path) -> None:
    """Waits until all nodes see a folder. Raises AgentError where one has failed."""
    number = team.told("folder", (0, ""))[0] + 1
    team.tell(STARTED, folder=(number, str(folder)))
    while any((pod.said(DOCUMENT) or {}).get("seen") != number for pod in team.check()[1:]):
        time.sleep(POLL_SECONDS)


def _check_settings(config: Config, ranks: int) -> None:
    if not config.text("run_name"):
        refuse("OLMoConfigurationError", "--run_name is required")
    if config.text("load_path"):
        refuse("OLMoConfigurationError", "simulator: there is nothing at a load_path to begin with")
    if config.text("wandb.name") or config.text("wandb.project"):
        refuse("wandb.errors.UsageError", "api_key not configured (no-tty). call wandb.login(key=[your_api_key])")
    if config.number("global_train_batch_size") % ranks:
        refuse("AssertionError", "global_batch_size % self.world_size == 0")


def _claim_folder(config: Config, checkpoints: Checkpoints, log: Log) -> None:
    """Writes the config, and the order of the data, into the run's folder."""
    saved = checkpoints.folder / "config.yaml"
    if saved.is_file() and not config.yes("save_overwrite"):
        refuse("OLMoConfigurationError", f"{saved} already exists, use --save_overwrite to overwrite")
    log.info("train:93", f"Saving config to {saved}")
    indices = checkpoints.folder / "train_data" / "global_indices.npy"
    indices.parent.mkdir(parents=True, exist_ok=True)
    saved.write_text("".join(f"{name}: {value}\n" for name, value in config.values.items() if value))
    log.info("olmo.data.iterable_dataset:78", "Saving global data order indices...")
    indices.write_bytes(len(config.data).to_bytes(8, "little"))
    log.info("olmo.data.iterable_dataset:87", f"Global data order indices saved to '{indices}'")


def _restore(config: Config, checkpoints: Checkpoints, log: Log) -> int:
    """The step to go on from; a training that begins saves a checkpoint first, to be sure that it can."""
    found = checkpoints.latest() if config.yes("try_load_latest_save") else None
    if found is not None:
        log.info("train:269", f"Setting load path to local checkpoint {found}")
        log.info("train:354", f"Loading checkpoint from {found}...")
        log.info("train:361", "Checkpoint successfully loaded")
        return checkpoints.step_of(found)
    kind = "sharded" if config.number("save_num_checkpoints_to_keep", -1) else "unsharded"
    checkpoints.save(0, kind, "pre-train checkpoint")
    return 0


def _steps(
    config: Config, team: Team, communicator: Communicator, checkpoints: Checkpoints, log: Log, first: int
) -> int:
    """Trains up to the end, and returns the last step."""
    end = min(config.number("stop_at", config.max_steps + 10), config.max_steps)
    step = min(first, end - 1)  # one that was at its end already takes another step, as on real Azure
    started = step
    while step < end:
        step += 1
        team.check()
        duration = _duration(config, communicator)
        pace = FASTER if step - started <= FAST_STEPS else 1
        time.sleep(duration / pace)
        log.step(
            step,
            config.max_steps,
            _metrics(config, communicator.ranks, step, None if step == started + 1 else duration),
        )
        for kind, name in (("sharded", "save_interval"), ("unsharded", "save_interval_unsharded")):
            interval = config.number(name)
            kept = config.number(f"save_num_{'unsharded_' if kind == 'unsharded' else ''}checkpoints_to_keep", -1)
            if interval and kept and step % interval == 0:
                checkpoints.save(step, kind, "checkpoint" if kind == "sharded" else "unsharded checkpoint")
    return step


def _duration(config: Config, communicator: Communicator) -> float:
    """Seconds of a step on the links as they are now.

    FSDP gathers the weights twice and scatters gradients once for each micro-batch, two bytes a weight.
    """
    micro_batches = config.number("global_train_batch_size") / (
        communicator.ranks * config.number("device_train_microbatch_size")
    )
    exchanged = 3 * 2 * config.parameters[0] * math.ceil(micro_batches)
    update = training.Update(flops=config.arithmetic_per_token * config.tokens_per_step, exchanged=exchanged)
    return communicator.seconds(update)


def _metrics(config: Config, ranks: int, step: int, duration: float | None) -> dict[str, float]:
    """Of one step; the first has no speed, as OLMo leaves it out. The loss falls as if something were learnt."""
    loss = 2.4 + 8.6 * (step + 1) ** -0.25
    tokens = step * config.tokens_per_step
    gflops = config.flops_per_token * tokens / 1e9
    metrics = {
        "train/CrossEntropyLoss": loss,
        "train/Perplexity": math.exp(loss),
        "throughput/total_tokens": tokens,
        "throughput/total_training_Gflops": gflops,
        "throughput/total_training_log_Gflops": math.log(gflops),
    }
    if duration is not None:
        metrics["throughput/device/tokens_per_second"] = config.tokens_per_step / ranks / duration
        metrics["throughput/device/batches_per_second"] = 1 / duration
    return metrics


def _save_last(config: Config, checkpoints: Checkpoints, last: int) -> None:
    if config.number("save_interval_unsharded") and checkpoints.saved.get("unsharded") != last:
        checkpoints.save(last, "unsharded", "final unsharded model checkpoint")
    elif config.number("save_num_checkpoints_to_keep", -1) and checkpoints.saved.get("sharded") != last:
        checkpoints.save(last, "sharded", "final checkpoint")


def _uncaught(log: Log, error: Exception) -> NoReturn:
    log.critical("olmo.util:168", f"Uncaught {type(error).__name__}: {error}")
    raise ProgramError(str(error)) from error
