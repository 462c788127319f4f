"""`python -m simulator`: see cli.py."""

import signal
import sys

from simulator.cli import main

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a cancelled CI job, or `timeout`: as orderly as Ctrl-C
    sys.exit(main())
