"""Emulated pulumi-kubernetes 4.34 plugin: every kind, `helm.v3.Release` and the provider resource.

Behaviour and messages follow pulumi/pulumi-kubernetes v4.34 (provider/pkg), as observed with a real API server. Not
supported: client-side apply, rendering to YAML, the components `helm.v4.Chart`, `yaml` and `kustomize`, functions, the
annotation `waitFor`, and waiting for kinds that `awaiters/__init__.py` does not list.
"""

VERSION = "4.34.2"
