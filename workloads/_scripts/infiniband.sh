# shellcheck shell=bash
# Sourced on a node of a job.

# Prints the InfiniBand devices as NCCL_IB_HCA wants them: =mlx5_0:1,mlx5_1:1 (= for exact names); nothing where there are none.
# The accelerated-networking function of the VM is an mlx5 device too, but an Ethernet one: only the link layer tells.
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
