"""Resources that pods request and nodes offer.

Follows PodRequests of Kubernetes (component-helpers, resource/helpers.go, 1.35.4), which scheduler, kubelet and cluster
autoscaler use. Uses limits for missing requests, as the API server does: pod templates lack these defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from k8s.objects import Object
from k8s.quantities import count, is_quantity, value

Resources = dict[str, Fraction]
_POD_LEVEL = ("cpu", "memory", "hugepages-")


def pod_requests(pod: Object, counts: Callable[[str], bool] = lambda name: True) -> Resources:
    """Returns a pod's requests of the resources for which `counts` is True.

    An init container runs together with earlier sidecars; main containers run together with all sidecars.
    """
    spec = pod["spec"]
    sidecars, starting = Resources(), Resources()
    for container in spec.get("initContainers") or []:
        own = _requests(container, counts)
        starting = _most(starting, _sum(sidecars, own))
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, own)
    running = _sum(sidecars, *(_requests(container, counts) for container in spec.get("containers") or []))
    of_pod = _amounts((spec.get("resources") or {}).get("requests"), lambda name: name.startswith(_POD_LEVEL))
    total = _most(starting, running) | {name: amount for name, amount in of_pod.items() if counts(name)}
    return {name: amount for name, amount in _sum(total, _amounts(spec.get("overhead"), counts)).items() if amount > 0}


def device_requests(pod: Object) -> dict[str, int]:
    return {name: math.ceil(amount) for name, amount in pod_requests(pod, lambda name: "/" in name).items()}


def allocatable(node: Object, resource: str) -> int:
    return count(node.get("status", {}).get("allocatable", {}).get(resource, 0))


def _requests(container: Object, counts: Callable[[str], bool]) -> Resources:
    resources = container.get("resources") or {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})}, counts)


def _amounts(quantities: Mapping[str, object] | None, counts: Callable[[str], bool]) -> Resources:
    """Returns the amounts as numbers; 0 for a value that is not a quantity, as other vendors' objects may have."""
    named = ((name, text) for name, text in (quantities or {}).items() if counts(name))
    return {name: value(text) if is_quantity(text) else Fraction(0) for name, text in named}


def _sum(*parts: Resources) -> Resources:
    total = Resources()
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def _most(one: Resources, other: Resources) -> Resources:
    return {name: max(one.get(name, Fraction(0)), other.get(name, Fraction(0))) for name in one | other}
