"""Claims that keep users' files after a workload is removed, and the stack output `files` that lists them.

If a claim stays in the cluster, Pulumi still removes it from the state, so each update reads the output of the last
update. Warnings about deleted data, deleted images and the end of protection also read outputs of the last update.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pulumi
import pulumi_kubernetes as kubernetes

from components.azure.roles import subscription_id
from config.data.output_names import FILES, PLATFORM, REGISTRY
from config.problems.fixes import path_text, remove_command, set_command
from config.schema.models import Settings
from config.schema.registry import RegistrySettings, login_server
from config.schema.storage import Account, StorageSettings, account_path

_IN_USE = "in use"


def kept_before(outputs: Mapping[str, Any]) -> Mapping[str, str]:
    """Returns the claims in the last outputs: `in use` or the command that deletes the claim, by namespace/name."""
    return outputs.get(FILES) or {}


def cluster_keeps_files(settings: Settings, outputs: Mapping[str, Any]) -> bool:
    return settings.keeps_files or bool(kept_before(outputs))


def protects_cluster(settings: Settings, outputs: Mapping[str, Any]) -> bool:
    return settings.storage.protect and cluster_keeps_files(settings, outputs)


def files(made: Iterable[pulumi.Resource], before: Mapping[str, str]) -> pulumi.Output[dict[str, str]]:
    """Returns the output `files`, and warns of each claim that this update stops using.

    `made` are all resources of the stack, and `before` are the claims of the last update.
    """
    claims = [each for each in made if isinstance(each, kubernetes.core.v1.PersistentVolumeClaimPatch)]
    names = [pulumi.Output.concat(each.metadata["namespace"], "/", each.metadata["name"]) for each in claims]
    return pulumi.Output.all(*names).apply(lambda used: _files(used, before))


def _files(used: Sequence[str], before: Mapping[str, str]) -> dict[str, str]:
    unused = {claim: _deletion(claim) for claim in sorted(before) if claim not in used}
    for claim, command in unused.items():
        if before[claim] == _IN_USE:
            pulumi.log.warn(
                f"the stack stops using the claim {claim}, which stays in the cluster with its files. A workload that "
                f"names the same claim finds the files again. To delete the claim: {command}"
            )
    return {**unused, **dict.fromkeys(sorted(used), _IN_USE)}


def _deletion(claim: str) -> str:
    namespace, _, name = claim.partition("/")
    return f"kubectl delete persistentvolumeclaim -n {namespace} {name}"


class _Stored(NamedTuple):
    key: str
    name: str
    stays: bool
    data: Mapping[str, bool]
    """Whether data stays, for each setting that declares data, such as `storage.containers.data`."""


def storage_warnings(settings: Settings, outputs: Mapping[str, Any]) -> Iterator[str]:
    """Yields warnings about a deleted registry, about each account that loses data, and about the end of protection.

    `outputs` are the outputs of the last update; empty before the first one.
    """
    yield from _registry(settings, outputs.get(REGISTRY))
    if PLATFORM not in outputs:
        return
    before = outputs[PLATFORM].get("settings", {}).get("storage", {})
    now = StorageSettings() if settings.shared_platform else settings.storage
    was_protected = {key: each.get("protect", True) for key, each in _by_key(before).items()}
    protected = {each.key: each.settings.protect for each in now.all_accounts()}
    exposed: dict[str, list[str]] = {}
    for key, name, stays, data in _stored(settings, now, outputs):
        was, lost = was_protected.get(key, True), [path for path, kept in data.items() if not kept]
        if lost and not (was and protected.get(key, True)):
            gone = f"the storage account {name}" if not stays else f"data in the storage account {name}"
            yield (
                f"this update deletes {gone}, with all files of {', '.join(lost)}. To keep the files, put these "
                f"settings back into Pulumi.{settings.stack}.yaml before `pulumi up`"
            )
        elif was and not protected.get(key, True):
            exposed.setdefault(key, []).append(f"the storage account {name} ({', '.join(data)})")
    if was_protected[""] and not protected[""] and cluster_keeps_files(settings, outputs):
        exposed.setdefault("", []).append("the cluster, with the files of its claims")
    if exposed:
        keep = " && ".join(set_command((*account_path(key), "protect"), True).text(settings.stack) for key in exposed)
        names = "; ".join(name for each in exposed.values() for name in each)
        yield (
            f"this update ends the protection against deletion of {names}. `pulumi destroy` and later updates can then "
            f"delete all data there. To keep the protection: {keep}"
        )


def _registry(settings: Settings, host: str | None) -> Iterator[str]:
    if not host:
        return
    new, default = (
        login_server(each.full_name(settings.names, subscription_id()))
        for each in (settings.registry, RegistrySettings())
    )
    keep, then = set_command(("registry", "name"), host.partition(".")[0]), ""
    if settings.shared_platform:
        keep = remove_command(("platformStack",))
    elif host == new:
        return
    else:
        keep = remove_command(("registry", "name")) if host == default else keep
        then = f" Push them to the new registry after the update: make images REGISTRY={new}."
    yield (
        f"this update deletes the registry {host} with all its images. Pods cannot pull these images any more."
        f"{then} To keep the registry: {keep.text(settings.stack)}"
    )


def _stored(settings: Settings, now: StorageSettings, outputs: Mapping[str, Any]) -> Iterator[_Stored]:
    accounts = {each.key: each for each in now.made_accounts()}
    for key, shown in _by_key(outputs.get("storage", {})).items():
        if "account" in shown:
            name, account = shown["account"], accounts.get(key, Account(key, StorageSettings()))
            stays = key in accounts and account.full_name(settings.names, subscription_id()) == name
            kept = account.settings.containers if stays else {}
            yield _Stored(
                key, name, stays, {path_text(account.path_of(each)): each in kept for each in shown["containers"]}
            )
    if outputs[PLATFORM].get("settings", {}).get("storage", {}).get("sharedFiles") == "nfs":
        stays = not settings.shared_platform and settings.shared_files == "nfs"
        name = now.files_account(settings.names, subscription_id())
        yield _Stored("", name, stays, {"storage.sharedFiles nfs": stays})


def _by_key(accounts: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"": accounts, **accounts.get("accounts", {})}
