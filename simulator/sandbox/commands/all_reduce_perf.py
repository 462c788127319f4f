"""`all_reduce_perf` of nccl-tests without mpirun."""

from __future__ import annotations

import os

from simulator.sandbox.library import nccl_net, nccl_tests, view
from simulator.sandbox.library.ranks import Rank


def main(arguments: list[str]) -> int:
    known = view.load()
    variables = {**nccl_net.nccl_configuration(), **os.environ}
    return nccl_tests.run([Rank(known.me, 0, 1)], ["all_reduce_perf", *arguments], variables, known)
