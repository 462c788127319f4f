"""Hyper-V's pool of key-value pairs for a VM (/var/lib/hyperv/.kvp_pool_3), as an Azure host provides it."""

from __future__ import annotations

import uuid

from simulator.world.hardware import NodeHardware, number

KEY_BYTES, VALUE_BYTES = 512, 2048
"""Sizes in a record (linux/hyperv.h: HV_KVP_EXCHANGE_MAX_KEY_SIZE and HV_KVP_EXCHANGE_MAX_VALUE_SIZE)."""
_FIXED = {
    "HostingSystemEditionId": "168",
    "HostingSystemNestedLevel": "0",
    "HostingSystemOsMajor": "10",
    "HostingSystemOsMinor": "0",
    "HostingSystemProcessorArchitecture": "9",
    "HostingSystemProcessorIdleStateMax": "0",
    "HostingSystemProcessorThrottleMax": "100",
    "HostingSystemProcessorThrottleMin": "100",
    "HostingSystemSpMajor": "0",
    "HostingSystemSpMinor": "0",
    "VirtualMachineDynamicMemoryBalancingEnabled": "0",
}


_HOST = ("HostName", "PhysicalHostName", "PhysicalHostNameFullyQualified")
KEYS = (*_HOST, *_FIXED, "VirtualMachineId", "VirtualMachineName")


def pairs(hardware: NodeHardware) -> dict[str, str]:
    """Returns a node's pairs: the name of its host, and ids of the VM that only the host knows."""
    host = f"SIM{number(hardware.node, 'host') % 10**12:012d}"
    names = dict.fromkeys(_HOST, host)
    vm_id = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{hardware.node}/vm")).upper()
    vm_name = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{hardware.node}/name"))
    found = {**names, **_FIXED, "VirtualMachineId": vm_id, "VirtualMachineName": vm_name}
    return dict(sorted(found.items()))


def pool(hardware: NodeHardware) -> bytes:
    return b"".join(record(key, value) for key, value in pairs(hardware).items())


def record(key: str, value: str) -> bytes:
    """Returns one record: both texts in UTF-8, padded with zero bytes. Raises ValueError if a text is too long."""
    fields = ((key.encode(), KEY_BYTES), (value.encode(), VALUE_BYTES))
    if any(len(text) >= size for text, size in fields):
        raise ValueError(f"{key}: a key has less than {KEY_BYTES} bytes, a value less than {VALUE_BYTES}")
    return b"".join(text.ljust(size, b"\0") for text, size in fields)
