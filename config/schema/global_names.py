"""Names that are unique in all of Azure, derived so that a stack always finds the same ones."""

from __future__ import annotations

import hashlib
import re

from config.schema.names import Names

_DIGEST = 6


def global_name(names: Names, subscription_id: str, limit: int, key: str = "") -> str:
    """Lower-case letters and digits of project and stack, and a digest of the subscription; `limit` characters at most.

    Stacks of one name in two subscriptions get two names, and so do stacks whose names differ only where they are cut.
    `key`, of letters and digits, tells several of one stack apart: stack devinput has another name than input of dev.
    """
    text = re.sub(r"[^a-z0-9]", "", f"{names.project}{names.stack}".lower())
    room = limit - _DIGEST - len(key)
    full = "/".join(filter(None, [subscription_id, names.project, names.stack, key]))
    seed = full if key or len(text) > room else subscription_id
    return text[:room] + key + hashlib.sha256(seed.encode()).hexdigest()[:_DIGEST]
