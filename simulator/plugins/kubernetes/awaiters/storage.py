"""Readiness of PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

from simulator.plugins.kubernetes.awaiters.base import Look, Progress


def persistent_volume(look: Look) -> Progress:
    phase = look.live.get("status", {}).get("phase")
    return Progress(done=phase in ("Available", "Bound"), status=f"Waiting for the volume (phase {phase})")


def persistent_volume_claim(look: Look) -> Progress:
    """Ready if the claim is bound, or is pending and its storage class waits for the first pod."""
    phase = look.live.get("status", {}).get("phase")
    if phase == "Bound":
        return Progress(done=True)
    class_name = look.live["spec"].get("storageClassName")
    storage_class = look.kube.find("storage.k8s.io/v1", "StorageClass", class_name) if class_name else None
    later = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
    status = f"Waiting for the claim to be bound (phase {phase}, storage class {class_name or 'none'})"
    return Progress(done=later and phase == "Pending", status=status, reasons=[] if later else [status])
