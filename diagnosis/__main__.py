"""`python -m diagnosis -n <namespace> <workload>...`: how workloads fare, what they wait for, and what to do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from diagnosis import kubectl
from diagnosis.cluster import Cluster
from diagnosis.report import report


def main(argv: Sequence[str] | None = None) -> int:
    """0 when the cluster could be read, whatever it says."""
    parser = argparse.ArgumentParser(prog="python -m diagnosis", description=__doc__)
    parser.add_argument("-n", "--namespace", required=True, help="of the workloads")
    parser.add_argument("workload", nargs="+", help="name of a Job, of a Volcano Job or of a Deployment")
    options = parser.parse_args(argv)
    cluster = Cluster(kubectl.read)
    try:
        for name in options.workload:
            print("\n".join(report(cluster, options.namespace, name).lines()))
    except kubectl.KubectlFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
