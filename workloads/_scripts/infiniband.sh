# shellcheck shell=bash
# Finds the InfiniBand devices of a node. Scripts of a job source it.

# Prints the InfiniBand devices in the format of NCCL_IB_HCA, =mlx5_0:1,mlx5_1:1 (= for exact names), or nothing. The
# accelerated-networking function of the VM is an mlx5 device too; only its link layer, Ethernet, differs.
infiniband_devices() {
  local port device devices=()
  for port in /sys/class/infiniband/*/ports/*; do
    [[ -r $port/link_layer && $(<"$port/link_layer") == InfiniBand ]] || continue
    device=${port%/ports/*}
    devices+=("${device##*/}:${port##*/}")
  done
  ((${#devices[@]} > 0)) || return 0
  local IFS=,
  echo "=${devices[*]}"
}
