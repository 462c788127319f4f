#!/usr/bin/env bash
# One node of the job: tells NCCL which HCAs are InfiniBand, then lets the master in by ssh until the job ends.
set -euo pipefail

# Prints the InfiniBand devices as NCCL_IB_HCA wants them: =mlx5_0:1,mlx5_1:1 (= for exact names).
# The accelerated-networking function of the VM is an mlx5 device too, but an Ethernet one: only the link layer tells.
infiniband_devices() {
  local port device number devices=()
  for port in /sys/class/infiniband/*/ports/*; do
    [[ -r $port/link_layer && $(<"$port/link_layer") == InfiniBand ]] || continue
    number=${port##*/}
    device=${port%/ports/*}
    devices+=("${device##*/}:$number")
  done
  [[ ${#devices[@]} -gt 0 ]] || return 0
  local IFS=,
  echo "=${devices[*]}"
}

infiniband=$(infiniband_devices)
if [[ -n $infiniband ]]; then
  # NCCL reads this file in every process on the node, so that each node chooses among its own devices.
  echo "NCCL_IB_HCA=$infiniband" >>/etc/nccl.conf
  echo "InfiniBand devices: ${infiniband#=}"
else
  echo "InfiniBand devices: none; NCCL will use TCP"
fi

ssh-keygen -A >/dev/null # host keys: the image has none, so that no two clusters share them
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e
