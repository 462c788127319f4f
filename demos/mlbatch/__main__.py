"""`python -m demos.mlbatch`: shows on the cluster of kubectl's context what teams get."""

from __future__ import annotations

import sys

from demos.mlbatch.cluster import Cluster, Denied, Failed
from demos.mlbatch.steps import STEPS, Demonstration


def main() -> int:
    """Exit code: 0 where every step came out as it should."""
    try:
        Demonstration(Cluster(), lambda line: print(line, flush=True)).run()
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
