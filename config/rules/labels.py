"""Rules of Kubernetes and AKS for labels and taints of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from config.data.scheduling import GPU_TAINT
from config.problems.errors import Problem
from config.problems.fixes import Fix, Path, by_hand, move_command, remove_command, rename_by_hand, set_command

_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_PREFIX = r"(?=[^/]{1,253}/)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_KEY = re.compile(rf"({_PREFIX}/)?{_NAME}")
_VALUE = re.compile(rf"({_NAME})?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_RESERVED = {
    "kubernetes.azure.com": "reserved for AKS (for a Spot pool, set spot to true: AKS adds its label and taint)",
    "kubernetes.io": "reserved for Kubernetes",
    "k8s.io": "reserved for Kubernetes",
    "ai-on-aks": "reserved for this program",
    "hyperv": "reserved for the node labeler, which removes all other labels with this prefix",
}
_OF_AKS = ("agentpool", "accelerator", "storageprofile", "storagetier")
_VALUE_RULE = "at most 63 letters, digits, '-', '_' and '.', a letter or digit at both ends"
_KEY_RULE = f"an optional DNS prefix and /, then {_VALUE_RULE}"


def label_problems(labels: Mapping[str, str], path: Path) -> Iterator[Problem]:
    for key, value in labels.items():
        where = (*path, key)
        if what := _key_fault(key):
            yield Problem(where, what, _key_rule(key), _renamed(where, labels))
        elif not _VALUE.fullmatch(value):
            better = re.sub(r"[^A-Za-z0-9._-]+", "-", value)[:63].strip("-._")
            yield Problem(where, f"is {value!r}, not a valid label value", _VALUE_RULE, set_command(where, better))


def taint_problems(taints: Sequence[str], path: Path) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where = (*path, index)
        key_and_value, colon, effect = taint.rpartition(":")
        key, _, value = key_and_value.partition("=")
        if not colon or effect not in _EFFECTS or not _VALUE.fullmatch(value):
            shape = f"key=value:Effect with an effect of {', '.join(_EFFECTS)}"
            fix = set_command(where, GPU_TAINT) if taint.lower() in GPU_TAINT.lower() else by_hand(where)
            yield Problem(where, f"is {taint!r}, not a valid taint", shape, fix)
        elif what := _key_fault(key):
            fix = remove_command(where) if _KEY.fullmatch(key) else by_hand(where)  # a reserved key is never valid
            yield Problem(where, f"is {taint!r}: its key {what}", _key_rule(key), fix)
        elif (key, effect) in seen:
            what = f"is {taint!r}, but an earlier taint has the same key and effect"
            yield Problem(where, what, "each key and effect once", remove_command(where))
        seen.add((key, effect))


def _renamed(path: Path, labels: Mapping[str, str]) -> Fix:
    key = str(path[-1])
    if _KEY.fullmatch(key):
        return remove_command(path)
    better = re.sub(r"[^A-Za-z0-9./_-]+", "-", key).strip("-._")
    is_good = better not in labels and not _key_fault(better)
    return move_command(path, (*path[:-1], better), labels[key]) if is_good else rename_by_hand(path)


def _key_fault(key: str) -> str:
    if not _KEY.fullmatch(key):
        return f"is not a valid key ({key!r})"
    if key in _OF_AKS:
        return "is a key that AKS sets itself"
    return f"has the reserved prefix {key.rpartition('/')[0]}/" if _reserved(key) else ""


def _key_rule(key: str) -> str:
    if key in _OF_AKS:
        return f"any key except {', '.join(_OF_AKS)}"
    reserved = _reserved(key)
    return f"any prefix except {reserved}/: {_RESERVED[reserved]}" if reserved else _KEY_RULE


def _reserved(key: str) -> str:
    prefix = key.rpartition("/")[0]
    return next((name for name in _RESERVED if prefix == name or prefix.endswith(f".{name}")), "")
