"""Check and Diff of the provider resource: rejected inputs, and changes that select another cluster."""

from __future__ import annotations

from typing import Any

from simulator.plugins.kubernetes import kubeconfig, options
from simulator.plugins.kubernetes.structural import compare
from simulator.plugins.marshal import UNKNOWN, Properties, decode, reveal
from simulator.plugins.protocol import provider_pb2

DiffResponse = provider_pb2.DiffResponse

_CLUSTER_IDENTIFIER = "clusterIdentifier"
_CLUSTER_INPUTS = ("kubeconfig", "context", "cluster")


def check(request: provider_pb2.CheckRequest) -> provider_pb2.CheckResponse:
    refused = options.refusals(reveal(decode(request.news)))
    failures = [provider_pb2.CheckFailure(property=name, reason=reason) for name, reason in refused.items()]
    return provider_pb2.CheckResponse(inputs=request.news, failures=failures)


def diff(request: provider_pb2.DiffRequest) -> provider_pb2.DiffResponse:
    """Compares provider inputs. Selecting another cluster replaces the provider and all its resources.

    If both old and new inputs have a `clusterIdentifier`, only the identifier decides. Otherwise, the kubeconfig's
    entries for the active cluster decide; an unknown kubeconfig counts as another cluster.
    """
    old, new = reveal(decode(request.olds)), reveal(decode(request.news))
    changed = sorted({str(path[0]) for path in compare(old, new)})
    if not changed:
        return DiffResponse(changes=DiffResponse.DIFF_NONE)
    identified = _CLUSTER_IDENTIFIER in old and _CLUSTER_IDENTIFIER in new
    replaces = [_CLUSTER_IDENTIFIER] if identified and _CLUSTER_IDENTIFIER in changed else []
    unknown = [name for name in _CLUSTER_INPUTS if new.get(name) is UNKNOWN]
    if unknown:
        changed = replaces_more = unknown[:1]
    else:
        replaces_more = [name for name in _CLUSTER_INPUTS if name in changed] if _moved(old, new) else []
    if identified and not replaces:
        replaces_more = []
    return DiffResponse(changes=DiffResponse.DIFF_SOME, diffs=changed, replaces=replaces + replaces_more)


def _moved(old: Properties, new: Properties) -> bool:
    before, after = _active(old), _active(new)
    return before is not None and after is not None and before != after


def _active(inputs: Properties) -> dict[str, Any] | None:
    try:
        return kubeconfig.active_cluster(inputs.get("kubeconfig"), inputs)
    except kubeconfig.KubeconfigError:
        return None
