#!/usr/bin/env bash
# Prints NODE, the worker's host name, its node, and its InfiniBand ports with their states: mlx5_0:1=ACTIVE mlx5_1:1=DOWN
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=workloads/_scripts/infiniband.sh
source "$here/infiniband.sh"

links=()
IFS=, read -ra ports < <(infiniband_devices | tr -d =)
for port in "${ports[@]}"; do
  state=$(<"/sys/class/infiniband/${port%:*}/ports/${port#*:}/state") # 4: ACTIVE
  links+=("$port=${state#*: }")
done
echo "NODE $(hostname) $(</etc/node-name) ${links[*]}"
