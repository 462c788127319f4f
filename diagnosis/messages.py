"""Extracts causes from other programs' messages in events and container states."""

from __future__ import annotations

import re
from collections.abc import Sequence

from k8s.objects import Object

_NOTICES = re.compile(
    r"\*{3} ?\S*fuse2?:[^\n]*?(?:\*{3}|\n|$)|\*{3} [^\n*]* \*{3}"
    r"|WARNING: Visit \S+ to see the list of known issues associated with your current version \[[^\]]*\]"
    r"|(?:Please refer to \S*blobmounterror|Refer to the mount\.\w+\(8\) manual page)[^\n]*"
)
"""Notices of new versions in blobfuse2's messages (Azure/azure-storage-fuse, cmd/root.go), and drivers' links to
documentation.
"""
_ENVELOPE = re.compile(
    r"\(combined from similar events\): |rpc error: code = \w+ desc = |Mount failed with error: "
    r"|Mounting command: .*?Output:|, output: *(?=\n|$)"
    r"| with NC Status: .*$| \"[0-9a-f]{64}\"|For help resolving this issue, please see \S+\.?",
    re.DOTALL,
)
"""Text around a cause: of Kubernetes, gRPC, Azure's CNI and CSI drivers, and a mount's command before its output."""
_SYMPTOM = re.compile(
    r"timed? ?out waiting for|timeout expired waiting|context deadline exceeded|DeadlineExceeded|context canceled"
    r"|(?i:an) operation with the given Volume ID .* already exists|^Back-off pulling image \"[^\"]*\"$"
)
_STATUS_ALONE = re.compile(r"[^:]*:?\s*exit status \d+[\s,:]*")


def cause(message: str) -> str:
    return _ENVELOPE.sub("", _NOTICES.sub(" ", message)).strip()


def is_symptom(message: str) -> bool:
    """Returns whether the message is empty or only a timeout."""
    return not message.strip() or bool(_SYMPTOM.search(message))


def hidden_by_notice(message: str) -> bool:
    return "***" in message and bool(_STATUS_ALONE.fullmatch(cause(message)))


def most_specific(events: Sequence[Object]) -> Object:
    texts = [event for event in events if event["message"].strip()] or events
    causes = [event for event in texts if not is_symptom(event["message"])]
    named = [event for event in causes if not hidden_by_notice(event["message"])]
    return (named or causes or texts)[-1]
