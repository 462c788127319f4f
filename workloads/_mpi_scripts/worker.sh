#!/usr/bin/env bash
# Runs on each node of the job: configures NCCL's InfiniBand devices, then accepts ssh from the master until the job ends.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=workloads/_scripts/infiniband.sh
source "$here/infiniband.sh"

infiniband=$(infiniband_devices)
if [[ -n $infiniband ]]; then
  # NCCL reads this file in every process, so each node uses its own devices.
  echo "NCCL_IB_HCA=$infiniband" >>/etc/nccl.conf
  echo "InfiniBand devices: ${infiniband#=}"
else
  echo "InfiniBand devices: none; NCCL will use TCP"
fi

ssh-keygen -A >/dev/null # host keys: the image has none, because clusters must not share them
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e
