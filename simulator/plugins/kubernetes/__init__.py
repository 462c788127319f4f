"""A stand-in of the pulumi-kubernetes 4.34 plugin: every kind, `helm.v3.Release` and the provider resource itself.

What it does, and the texts that users see, follow pulumi/pulumi-kubernetes at v4.34 (provider/pkg) as observed
against a real API server. Left out: client-side apply, rendering to YAML, and the components `helm.v4.Chart`, `yaml`
and `kustomize`.
"""

VERSION = "4.34.2"
