"""The outputs of a stack: their contents, and which of them are secret.

`docs/configuration.md` describes them to users; their names are in `config/data/output_names.py`. Operators add outputs
(`Installed.outputs`), and workloads add their commands (`Deployed` in workloads/_lib/base.py).

A stack on a shared platform reads the platform's outputs, after `config/rules/platform_stack.py` has validated them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pulumi

from components.azure.identity import Federation
from components.storage.accounts import Storage
from components.storage.container_access import ContainerAccess, Sas
from config.data.output_names import (
    CLUSTER_ID,
    FILES,
    KUBECONFIG,
    NEXT,
    PLATFORM,
    PLATFORM_STACK,
    REGISTRY,
    SAS,
    STORAGE,
    WORKLOAD_DETAILS,
)
from config.rules.platform_stack import shared_settings
from config.schema.storage import ContainerSettings

if TYPE_CHECKING:
    from components.foundation import Foundation
    from components.platform import Platform
    from components.shared_platform import SharedPlatform

NOTHING = "# nothing: both phases are done"
"""The output `next` after the second phase: a comment, which a shell ignores."""
SECRET = (KUBECONFIG, SAS, PLATFORM, WORKLOAD_DETAILS)


def export(outputs: Mapping[str, Any]) -> None:
    for name, value in outputs.items():
        pulumi.export(name, pulumi.Output.secret(value) if name in SECRET else value)


def foundation_outputs(foundation: Foundation, next_command: str | None) -> dict[str, Any]:
    """Returns the outputs of the stack's own Azure resources. `next_command` is the step after this phase, or None if
    the stack has only one phase.
    """
    return {
        "resourceGroup": foundation.resource_group.name,
        "clusterName": foundation.cluster.name,
        CLUSTER_ID: foundation.cluster.id,
        REGISTRY: foundation.registry.login_server,
        STORAGE: _storage(foundation.storage),
        **({NEXT: next_command} if next_command else {}),
    }


def platform_outputs(platform: Platform) -> dict[str, Any]:
    containers = platform.foundation.containers
    next_command = NOTHING if platform.settings.network.two_phases else None
    return {
        **foundation_outputs(platform.foundation, next_command),
        KUBECONFIG: platform.access.kubeconfig,
        "pools": {key: pool.agent_pool for key, pool in platform.pools.pools.items()},
        SAS: {name: describe_sas(access) for name, access in containers.items()},
        PLATFORM: _for_other_stacks(platform),
        **platform.operators.outputs,
    }


def shared_platform_outputs(platform: SharedPlatform) -> dict[str, Any]:
    return {
        PLATFORM_STACK: str(platform.shared_platform.stack),
        CLUSTER_ID: platform.cluster_id,
        KUBECONFIG: platform.kubeconfig,
    }


def workload_outputs(
    commands: Mapping[str, pulumi.Output[str]],
    details: Mapping[str, Mapping[str, Any]],
    files: pulumi.Output[dict[str, str]],
) -> dict[str, Any]:
    """Returns the workloads' outputs: commands that show their state, details for programs, and claims with users'
    files.
    """
    return {"workloads": commands, WORKLOAD_DETAILS: details, FILES: files}


def _for_other_stacks(platform: Platform) -> dict[str, Any]:
    foundation, federation = platform.foundation, platform.federation
    return {
        "settings": shared_settings(platform.settings),
        "loginServer": foundation.registry.login_server,
        "containers": {name: describe_container(access) for name, access in foundation.containers.items()},
        **({"federation": _federation(federation)} if federation else {}),
    }


def _storage(accounts: Sequence[Storage]) -> dict[str, Any]:
    found = {each.account.key: {"account": each.account_name, "containers": list(each.containers)} for each in accounts}
    own = found.pop("", {})
    return {**own, **({"accounts": found} if found else {})}


def account_names(outputs: Mapping[str, Any]) -> list[str]:
    storage = outputs.get(STORAGE, {})
    return [each["account"] for each in (storage, *storage.get("accounts", {}).values()) if "account" in each]


def _federation(federation: Federation) -> dict[str, pulumi.Input[str]]:
    return {
        "resourceGroup": federation.resource_group,
        "location": federation.location,
        "cluster": federation.cluster,
        "issuer": federation.issuer,
    }


def read_federation(plain: Mapping[str, Any]) -> Federation:
    return Federation(
        resource_group=plain["resourceGroup"],
        location=plain["location"],
        cluster=plain["cluster"],
        issuer=plain["issuer"],
    )


def describe_container(access: ContainerAccess) -> dict[str, Any]:
    sas = access.sas
    opens = {"rotation": sas.rotation, "start": sas.start, "expiry": sas.expiry} if sas else {"scope": access.scope}
    return {
        "account": access.account,
        **({"accountKey": access.account_key} if access.account_key else {}),
        "container": access.container,
        "hierarchicalNamespace": access.hierarchical_namespace,
        "settings": access.settings.model_dump(by_alias=True),
        "generation": access.generation,
        "url": access.url,
        **opens,
    }


def describe_sas(access: ContainerAccess) -> dict[str, pulumi.Output[str]]:
    if access.sas is None:
        return {}
    return {"sas": access.sas.mount, **({"uploadSas": access.sas.upload} if access.sas.upload is not None else {})}


def read_container(plain: Mapping[str, Any], secrets: pulumi.Output[Any]) -> ContainerAccess:
    settings = ContainerSettings.model_validate(plain["settings"])
    return ContainerAccess(
        account=plain["account"],
        account_key=plain.get("accountKey", ""),
        container=plain["container"],
        hierarchical_namespace=plain["hierarchicalNamespace"],
        settings=settings,
        generation=plain["generation"],
        url=plain["url"],
        sas=None if is_opened_by_identity(plain) else _read_sas(plain, secrets, upload=settings.upload),
        scope=plain.get("scope", ""),
    )


def is_opened_by_identity(plain: Mapping[str, Any]) -> bool:
    return "rotation" not in plain


def _read_sas(plain: Mapping[str, Any], secrets: pulumi.Output[Any], *, upload: bool) -> Sas:
    return Sas(
        rotation=plain["rotation"],
        start=plain["start"],
        expiry=plain["expiry"],
        mount=pulumi.Output.secret(secrets["sas"]),
        upload=pulumi.Output.secret(secrets["uploadSas"]) if upload else None,
    )
