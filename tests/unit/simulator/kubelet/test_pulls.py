from __future__ import annotations

from typing import Any

from simulator.kubelet.pulls import LAST_PAUSE_S, ImagePulls

IMAGE = "devabc.azurecr.io/olmo:12"
MISSING = f'failed to pull and unpack image "{IMAGE}": {IMAGE}: not found'


class Registry:
    """Rejects the image until `refusal` changes. `now` is the clock."""

    def __init__(self) -> None:
        self.refusal: str | None = MISSING
        self.asked = 0
        self.now = 0.0
        self.pulls = ImagePulls(self._may_pull, lambda: self.now)

    def _may_pull(self, image: str) -> str | None:
        assert image == IMAGE
        self.asked += 1
        return self.refusal

    def reason(self, uid: str = "u", node: str = "n", policy: str = "IfNotPresent") -> str:
        waiting = self.pulls.waiting(*_pod(uid, node, policy))
        return waiting.reason if waiting else ""


def _pod(uid: str, node: str, policy: str) -> tuple[dict[str, Any], dict[str, Any]]:
    container = {"name": "c", "image": IMAGE, "imagePullPolicy": policy}
    return {"metadata": {"uid": uid}, "spec": {"nodeName": node, "containers": [container]}}, container


def test_backs_off_between_retries() -> None:
    registry = Registry()
    tries = []
    for tenth in range(300):
        registry.now = tenth / 10
        if registry.reason() == "ErrImagePull":
            tries.append(registry.now)
    pauses = [later - earlier for earlier, later in zip(tries, tries[1:], strict=False)]
    assert pauses[:3] == [1.0, 2.0, 4.0]
    assert max(pauses) == LAST_PAUSE_S


def test_pulls_a_pushed_image_once_per_node() -> None:
    registry = Registry()
    registry.reason()
    registry.refusal, registry.now = None, 1.5
    assert registry.reason() == ""
    registry.refusal, asked = "no longer", registry.asked
    assert registry.reason(uid="another") == ""
    assert registry.asked == asked
    assert registry.reason(uid="third", node="other") == "ErrImagePull"


def test_the_policy_always_queries_the_registry_again() -> None:
    registry = Registry()
    registry.refusal = None
    assert registry.reason() == ""
    registry.refusal = "AcrPull was taken away"
    assert registry.reason(uid="another", policy="Always") == "ErrImagePull"


def test_a_new_machine_has_no_images() -> None:
    registry = Registry()
    registry.refusal = None
    registry.reason()
    registry.pulls.keep(["u"], [])
    registry.refusal = MISSING
    assert registry.reason() == "ErrImagePull"
