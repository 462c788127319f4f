"""`python -m finetuning.ray_train`: the loop of finetuning.train in workers of Ray Train, one for each GPU.

--output is a folder that all nodes mount. Ray starts all workers again after one that died, once there are GPUs for
them, and the loop goes on from its own newest checkpoint there; Ray is told the metrics.
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
    """In each worker; what is wrong with the options, in any worker: no retry would mend it."""
    training, wrong = None, None
    try:
        training = train.prepared(argparse.Namespace(**chosen), get_device())
    except ValueError as error:
        wrong = str(error)
    all_wrong: list[str | None] = [None] * train.world()[1]
    distributed.all_gather_object(all_wrong, wrong)
    told = next(filter(None, all_wrong), None)
    if not told:
        training.run(report=lambda found: ray.train.report(dict(found)))
    return told


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where it is trained, 2 for what is wrong with its options."""
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
    told = trainer.fit().return_value
    if told:
        print(f"error: {told}", file=sys.stderr)
    return UNFIT if told else 0


if __name__ == "__main__":
    sys.exit(main())
