"""A stand-in of the pulumi-kubernetes 4.34 plugin: every kind, `helm.v3.Release` and the provider resource itself.

What it does, and the texts that users see, follow pulumi/pulumi-kubernetes at v4.34 (provider/pkg) as observed
against a real API server. Left out: client-side apply, rendering to YAML, the components `helm.v4.Chart`, `yaml` and
`kustomize`, functions, the annotation `waitFor`, and waiting for kinds that no stack has (`awaiters/__init__.py`).
"""

VERSION = "4.34.2"
