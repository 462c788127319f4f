"""Emulates kube-webhook-certgen, by which hooks of the chart create a certificate and set the CA of webhooks.

The Go module is not available. Source: README in kubernetes/ingress-nginx (images/kube-webhook-certgen). The keys of
the Secret are the names of the files that the chart's operator reads.
"""

from __future__ import annotations

import base64

from simulator.host.certificates import serving_certificate
from simulator.kubelet.programs import PodContext

_API = "admissionregistration.k8s.io/v1"
_KINDS = {"--patch-validating": "ValidatingWebhookConfiguration", "--patch-mutating": "MutatingWebhookConfiguration"}
_KEYS = {"ca.crt": "ca", "tls.crt": "cert", "tls.key": "key"}


def create(ctx: PodContext) -> None:
    options = _options(ctx)
    name, namespace = options["--secret-name"], options["--namespace"]
    if ctx.kube.find("v1", "Secret", name, namespace) is not None:
        ctx.log("secret already exists")
        return
    made = serving_certificate(options["--host"].split(","))
    data = {_KEYS[file]: base64.b64encode(content).decode() for file, content in made.items()}
    metadata = {"name": name, "namespace": namespace}
    ctx.kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    ctx.log("created secret")


def patch(ctx: PodContext) -> None:
    """Sets the Secret's CA in all webhooks of a configuration. Sets the failure policy if an option asks for it."""
    options = _options(ctx)
    secret = ctx.kube.get("v1", "Secret", options["--secret-name"], options["--namespace"])
    for option, kind in _KINDS.items():
        if options.get(option) == "false":
            continue
        configuration = ctx.kube.get(_API, kind, options["--webhook-name"])
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"]["caBundle"] = secret["data"]["ca"]
            if policy := options.get("--patch-failure-policy"):
                webhook["failurePolicy"] = policy
        ctx.kube.replace(configuration)
        ctx.log(f"patched {kind}")


def _options(ctx: PodContext) -> dict[str, str]:
    pairs = (argument.partition("=") for argument in ctx.argv() if argument.startswith("--"))
    return {name: value for name, _, value in pairs}
