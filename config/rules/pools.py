"""Rules for GPU pools and shared GPUs that the types of the settings cannot express."""

from __future__ import annotations

import re
from collections.abc import Iterator

from config.data.gpu_sharing import MIG_LABEL, SLICING_LABEL, mig_profiles
from config.data.near import hint
from config.data.scheduling import SCRATCH_LABEL
from config.data.skus import catalogue
from config.problems.errors import Problem
from config.problems.fixes import Edit, Fix, Path, by_hand, either_by_hand, path_text, remove_command, say, set_command
from config.rules.labels import label_problems, taint_problems
from config.schema.os_disk import MIN_OS_DISK_GB, most_ephemeral
from config.schema.pools import (
    MAX_NODES,
    MAX_POOL_KEY,
    MAX_POOL_NAME,
    REGULAR_PRICE,
    SUFFIX_LENGTH,
    PoolSettings,
    gpu_sizes,
)


def pool_problems(key: str, pool: PoolSettings, path: Path) -> Iterator[Problem]:
    yield from _key_problems(key, path)
    yield from _autoscale_problems(pool, path)
    yield from _disk_problems(pool, path)
    yield from _scratch_problems(pool, path)
    yield from _reservation_problems(pool, path)
    yield from _price_problems(pool, path)
    yield from sharing_problems(pool, path)
    yield from label_problems(pool.labels, (*path, "labels"))
    yield from taint_problems(pool.taints, (*path, "taints"))


def _key_problems(key: str, path: Path) -> Iterator[Problem]:
    if re.fullmatch(rf"[a-z][a-z0-9]{{0,{MAX_POOL_KEY - 1}}}", key):
        return
    better = re.sub(r"^[^a-z]+|[^a-z0-9]", "", key.lower())[:MAX_POOL_KEY] or "gpu"
    yield Problem(
        path,
        f"is named {key!r}, which is not a valid beginning of a pool's name in AKS",
        f"1 to {MAX_POOL_KEY} lower-case letters and digits, the first a letter (AKS allows {MAX_POOL_NAME}, and "
        f"this program adds {SUFFIX_LENGTH})",
        say(f"rename the key {key or repr(key)} to {better} under pools in the stack file, with all keys below it"),
    )


def _autoscale_problems(pool: PoolSettings, path: Path) -> Iterator[Problem]:
    if pool.autoscale is None:
        return
    low, high = pool.autoscale.min, pool.autoscale.max
    if low > high:
        where = (*path, "autoscale", "max")
        yield Problem(
            where, f"is {high}, less than min ({low})", f"{low} to {MAX_NODES}, or a lower min", by_hand(where)
        )
    if "count" in pool.model_fields_set:
        where = (*path, "count")
        what = f"is {pool.count}, but autoscale sets the number of nodes, starting with min ({low})"
        yield Problem(where, what, "no value with autoscale", remove_command(where))


def autoscale_fixed(path: Path, nodes: int, *, least: int | None = None, counted: bool = True) -> Fix:
    """Returns the commands that make a pool autoscale between `least` (by default `nodes`) and `nodes`.

    A command removes `count` if the user may have set it (`counted`). Pulumi ignores the removal of a missing key.
    """
    bounds = {"min": nodes if least is None else least, "max": nodes}
    edits = (Edit((*path, "autoscale", bound), value) for bound, value in bounds.items())
    return Fix((*edits, *((Edit((*path, "count")),) if counted else ())))


def _disk_problems(pool: PoolSettings, path: Path) -> Iterator[Problem]:
    size, disk = pool.sku, pool.disk
    most = most_ephemeral(size.local_gib)
    if disk.type == "Managed" or disk.gb <= most:
        return
    where = (*path, "osDiskGb")
    fits = most >= MIN_OS_DISK_GB
    fix = set_command(where, most) if fits else set_command((*path, "osDiskType"), "Managed")
    yield Problem(
        where,
        f"is {disk.gb}, but an Ephemeral OS disk must fit the temporary disk or the cache of {size.name}",
        f"at most {most}, or osDiskType Managed",
        fix,
    )


def _scratch_problems(pool: PoolSettings, path: Path) -> Iterator[Problem]:
    size = pool.sku
    where = (*path, "localNvmeScratch")
    if size.nvme is None and pool.local_nvme_scratch:
        with_disks = [name for name in gpu_sizes() if catalogue()[name].nvme]
        what = f"is true, but {size.name} has no local NVMe disks"
        allowed = f"false, or a VM size of {', '.join(with_disks)}"
        yield Problem(where, what, allowed, remove_command(where))
    if SCRATCH_LABEL in pool.labels:
        where = (*path, "labels", SCRATCH_LABEL)
        why = "" if size.nvme else f", and {size.name} has no local NVMe disks"
        what = f"is a label that the program sets itself{why}"
        yield Problem(where, what, "no value; use localNvmeScratch", remove_command(where))


def _reservation_problems(pool: PoolSettings, path: Path) -> Iterator[Problem]:
    """Yields problems of a pool's capacity reservation (pages of Azure and AKS on capacity reservations)."""
    if pool.capacity_reservation_group is None:
        return
    where = (*path, "capacityReservationGroup")
    if not pool.sku.reservable:
        sizes = ", ".join(name for name in gpu_sizes() if catalogue()[name].reservable)
        what = f"is set, but Azure does not reserve capacity of {pool.vm_sku}"
        fix = either_by_hand(where, f"set {path_text((*path, 'vmSku'))} to one of these sizes")
        yield Problem(where, what, f"no value, or a VM size of {sizes}", fix, shows_value=False)
    elif pool.spot:
        fix = either_by_hand(where, f"set {path_text((*path, 'spot'))} to false")
        yield Problem(where, "is set, but Spot nodes cannot be reserved", "no value, or spot false", fix)


def _price_problems(pool: PoolSettings, path: Path) -> Iterator[Problem]:
    if pool.spot_max_price == REGULAR_PRICE or pool.spot:
        return
    where = (*path, "spotMaxPrice")
    fix = either_by_hand(where, f"set {path_text((*path, 'spot'))} to true")
    yield Problem(where, "is set, but the pool is not a Spot pool", "no value, or spot true", fix)


def sharing_problems(pool: PoolSettings, path: Path) -> Iterator[Problem]:
    if pool.mig_profile is not None:
        yield from _profile_problems(pool, pool.mig_profile, (*path, "migProfile"))
    if pool.mig_profile is not None and pool.gpu_slices > 1 and mig_profiles(pool.sku.gpu_product):
        where = (*path, "gpuSlices")
        what = f"is {pool.gpu_slices}, but migProfile already partitions the GPUs"
        fix = either_by_hand(where, f"remove {path_text((*path, 'migProfile'))}")
        yield Problem(where, what, "one of the two", fix)
    for label, key in ((SLICING_LABEL, "gpuSlices"), (MIG_LABEL, "migProfile")):
        if label in pool.labels:
            where = (*path, "labels", label)
            what = "is a label that the program sets itself"
            yield Problem(where, what, f"no value; use {key}", remove_command(where))


def _profile_problems(pool: PoolSettings, profile: str, where: Path) -> Iterator[Problem]:
    known = mig_profiles(pool.sku.gpu_product)
    if not known:
        able = [name for name in gpu_sizes() if mig_profiles(catalogue()[name].gpu_product)]
        what = f"is set, but GPUs of {pool.vm_sku} ({pool.sku.gpu_model}) cannot be partitioned"
        allowed = f"no value, or gpuSlices, or a VM size of {', '.join(able)}"
        size, profiles = path_text((*where[:-1], "vmSku")), path_text(where)
        fix = say(f"set {size} to one of these sizes in the stack file, or remove {profiles}")
        yield Problem(where, what, allowed, fix)
        return
    if profile not in known:
        read = re.fullmatch(r"(?:nvidia\.com/)?(?:all-|mig-?)?([0-9]+g(?:\.[0-9]+gb)?)", profile.strip().lower())
        likely = [each for each in known if read and re.match(rf"all-{re.escape(read[1])}(\.|$)", each)]
        what = f"is {profile!r}, which GPUs of {pool.vm_sku} do not have{hint(likely)}"
        fix = set_command(where, likely[0]) if len(likely) == 1 else by_hand(where)  # AKS's MIG1g may mean two profiles
        yield Problem(where, what, ", ".join(known), fix)
    if pool.autoscale and pool.autoscale.min == 0:
        path = (*where[:-1], "autoscale", "min")
        what = "is 0, but without a node the autoscaler does not know the partitions, and would add a node for each pod"
        fix = say(f"set {path_text(path)} to 1, which keeps a node, or remove {path_text(where)}, in the stack file")
        yield Problem(path, what, "1 or more with migProfile", fix)
