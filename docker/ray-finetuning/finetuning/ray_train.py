"""Runs the loop of finetuning.train in workers of Ray Train, one for each GPU: `python -m finetuning.ray_train`.

All nodes must mount the folder --output. If a worker dies, Ray restarts all workers when GPUs are available. The loop
then continues from its newest checkpoint.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, get_device
from torch import distributed

from finetuning import train
from finetuning.options import RETRIES, START_RETRIES, UNFIT, ray_parser


def loop(chosen: Mapping[str, Any]) -> str | None:
    """Trains in a worker. If any worker has an error that no retry fixes, returns it; otherwise None."""
    training, wrong = None, None
    try:
        training = train.prepared(argparse.Namespace(**chosen), get_device())
    except ValueError as error:
        wrong = str(error)
    all_wrong: list[str | None] = [None] * train.world()[1]
    distributed.all_gather_object(all_wrong, wrong)
    first = next(filter(None, all_wrong), None)
    if not first:
        training.run(report=lambda found: ray.train.report(dict(found)))
    return first


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 after the training, or 2 for errors that no retry fixes."""
    chosen = ray_parser().parse_args(arguments)
    chosen.output = chosen.output.absolute()
    ray.init(ignore_reinit_error=True)
    trainer = TorchTrainer(
        loop,
        train_loop_config=vars(chosen),
        scaling_config=ScalingConfig(num_workers=chosen.workers, use_gpu=ray.cluster_resources().get("GPU", 0) > 0),
        run_config=RunConfig(
            name="finetuning",
            storage_path=str(chosen.output / "ray"),
            failure_config=FailureConfig(max_failures=RETRIES, controller_failure_limit=START_RETRIES),
        ),
    )
    wrong = trainer.fit().return_value
    if wrong:
        print(f"error: {wrong}", file=sys.stderr)
    return UNFIT if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
