"""`python -m workloads.resim`: submits batches of scenarios, and tells how they fare."""

from __future__ import annotations

import sys

from workloads.resim.cli.arguments import main

sys.exit(main())
