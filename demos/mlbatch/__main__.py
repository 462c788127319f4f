"""Demonstrates queues, quotas and recovery for teams on the cluster of kubectl's context."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from demos.mlbatch.cluster import Cluster, Denied, Failed
from demos.mlbatch.picture import drawn, held
from demos.mlbatch.steps import BLUE, RED, STEPS, Demonstration


def main() -> int:
    """Returns 0 if every step had the expected result."""
    parser = argparse.ArgumentParser(prog="python -m demos.mlbatch", description=__doc__)
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="GPUs by team over time, from Prometheus")
    parser.add_argument("--context", default="", help="of kubectl's configuration; without it, its current one")
    options, begun = parser.parse_args(), int(time.time())
    picture, cluster = options.picture, Cluster(options.context)
    try:
        Demonstration(cluster, lambda line: print(line, flush=True)).run()
        if picture:
            picture.write_text(drawn(held(cluster, (BLUE, RED), begun, int(time.time()))), encoding="utf-8")
            print(f"\n{picture}: GPUs that each team held, by Prometheus")
    except (Failed, Denied) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what it submitted was removed", file=sys.stderr)
        return 130
    print(f"\nall {len(STEPS)} steps came out as they should")
    return 0


if __name__ == "__main__":
    sys.exit(main())
