"""AKSInfinibandSupport: the feature of a subscription that puts the nodes of a pool on one InfiniBand fabric.

AKS reads the feature's state when it creates a pool. If the feature is not registered, AKS does not warn, and the
pool's jobs fail. So the program checks the state first. It does not register the feature, because that affects the
whole subscription and takes a quarter of an hour.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi_azure_native import features

from config.data.skus import VmSku
from config.problems.errors import lines
from config.rules.azure_errors import explained
from config.schema.pools import PoolSettings

NAMESPACE, FEATURE = "Microsoft.ContainerService", "AKSInfinibandSupport"
_REGISTERED = "Registered"
_HIDDEN = "AuthorizationFailed"
_NAMES = f"--namespace {NAMESPACE} --name {FEATURE}"


def check_infiniband(pools: Mapping[str, PoolSettings], *, checked_before: bool = False) -> None:
    """Raises pulumi.RunError if the state of the feature does not fit the VM size of a pool.

    If the first phase has checked the feature (`checked_before`), only warns if the login may not read the state.
    """
    sizes = {key: pool.sku for key, pool in pools.items() if pool.sku.infiniband}
    if not sizes:
        return
    try:
        found = features.get_subscription_feature_registration(feature_name=FEATURE, provider_namespace=NAMESPACE)
    except Exception as error:  # noqa: BLE001 - invokes raise bare exceptions
        if not (checked_before and _HIDDEN in str(error)):
            raise pulumi.RunError(explained(str(error), pulumi.get_stack())) from None
        pulumi.log.warn(
            f"this login may not read feature {NAMESPACE}/{FEATURE} ({_HIDDEN}); the first phase has checked it"
        )
        return
    if why := refusal(sizes, found.properties.state or "NotRegistered"):
        raise pulumi.RunError(why)


def refusal(sizes: Mapping[str, VmSku], state: str) -> str | None:
    registered = state == _REGISTERED
    wrong = [key for key, size in sizes.items() if size.infiniband and size.infiniband.aks_feature is not registered]
    if not wrong:
        return None
    which = ", ".join(f"{key} ({sizes[key].name})" for key in wrong)
    must = "must not be" if registered else "must be"
    steps = [f"az feature unregister {_NAMES}", *_wait_for("Unregistered")] if registered else _register(state)
    return lines(
        f"the feature {NAMESPACE}/{FEATURE} {must} registered before a pool of this size is created: {which}.",
        f"Its state in this subscription is {state}, so the pool's nodes would not be on one InfiniBand fabric.",
        "Nothing was changed. Do this, and then `pulumi up` again:",
        *(f"    {step}" for step in steps),
    )


def _register(state: str) -> list[str]:
    begin = [] if state == "Registering" else [f"az feature register {_NAMES}"]
    return [*begin, *_wait_for(_REGISTERED)]


def _wait_for(state: str) -> list[str]:
    show = f"az feature show {_NAMES} --query properties.state --output tsv"
    return [f"{show}    # until it prints {state}", f"az provider register --namespace {NAMESPACE}"]
