"""What must hold of GPUs that pods share, in one pool and with what is to run there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from config.facts.gpu_sharing import MIG_LABEL, SLICING_LABEL, mig_profiles
from config.facts.near import hint
from config.facts.skus import catalogue
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, either_by_hand, path_text, remove_command, say, set_command
from config.schema.pools import PoolSettings, gpu_sizes


def sharing_problems(pool: PoolSettings, path: Path) -> Iterator[Problem]:
    """What is wrong with a pool's slices or partitions; `path` leads to the pool."""
    if pool.mig_profile is not None:
        yield from _profile_problems(pool, pool.mig_profile, (*path, "migProfile"))
    if pool.mig_profile is not None and pool.gpu_slices > 1 and mig_profiles(pool.sku.gpu_product):
        where = (*path, "gpuSlices")
        what = f"is {pool.gpu_slices}, but the GPUs are partitioned already, by migProfile"
        fix = either_by_hand(where, f"remove {path_text((*path, 'migProfile'))}")
        yield Problem(where, what, "one of the two", fix)
    for label, key in ((SLICING_LABEL, "gpuSlices"), (MIG_LABEL, "migProfile")):
        if label in pool.labels:
            where = (*path, "labels", label)
            what = "is a label that the program sets itself"
            yield Problem(where, what, f"{key} in its place", remove_command(where))


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
        fix = set_command(where, likely[0]) if len(likely) == 1 else by_hand(where)  # MIG1g of AKS may mean two
        yield Problem(where, what, ", ".join(known), fix)
    if pool.autoscale and pool.autoscale.min == 0:
        path = (*where[:-1], "autoscale", "min")
        what = (
            "is 0, but from no node the autoscaler knows whole GPUs alone, not their partitions, and would bring a "
            "node for each pod"
        )
        fix = say(f"set {path_text(path)} to 1, which keeps a node, or remove {path_text(where)}, in the stack file")
        yield Problem(path, what, "1 or more with migProfile", fix)
