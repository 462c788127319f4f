#!/usr/bin/env bash
# One node of the job: tells NCCL which HCAs are InfiniBand, then lets the master in by ssh until the job ends.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=workloads/_scripts/infiniband.sh
source "$here/infiniband.sh"

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
