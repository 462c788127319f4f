"""Demonstrates queues, quotas and recovery for teams on the cluster of kubectl's context."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from demos.mlbatch.cluster import Cluster, Denied, Failed
from demos.mlbatch.picture import drawn, gpus_by_team
from demos.mlbatch.steps import BLUE, RED, STEPS, Demonstration


def main() -> int:
    """Returns 0 if every step had the expected result."""
    parser = argparse.ArgumentParser(prog="python -m demos.mlbatch", description=__doc__)
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw the GPUs of each team, from Prometheus")
    parser.add_argument("--context", default="", help="context of the kubeconfig; by default the current one")
    options, begun = parser.parse_args(), int(time.time())
    picture, cluster = options.picture, Cluster(options.context)
    try:
        Demonstration(cluster, lambda line: print(line, flush=True)).run()
        if picture:
            picture.write_text(drawn(gpus_by_team(cluster, (BLUE, RED), begun, int(time.time()))), encoding="utf-8")
            print(f"\n{picture}: GPUs of each team over time, from Prometheus")
    except (Failed, Denied) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; removed all submitted jobs", file=sys.stderr)
        return 130
    print(f"\nall {len(STEPS)} steps had the expected result")
    return 0


if __name__ == "__main__":
    sys.exit(main())
