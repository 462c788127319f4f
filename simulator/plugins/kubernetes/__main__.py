"""The plugin process: `pulumi-resource-kubernetes <engine address>`."""

from __future__ import annotations

import sys

from simulator.plugins.kubernetes.engine import Engine
from simulator.plugins.kubernetes.provider import KubernetesProvider
from simulator.plugins.serving import serve

serve(KubernetesProvider(Engine(sys.argv[1] if len(sys.argv) > 1 else "")))
