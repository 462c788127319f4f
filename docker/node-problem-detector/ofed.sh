#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Checks that OFED is loaded on a node with InfiniBand functions.
source "$(dirname "$0")/lib.sh"

functions=0
for device in /sys/bus/pci/devices/*; do
  [[ $(<"$device/vendor") == 0x15b3 && $(<"$device/class") == 0x0207* ]] || continue # Mellanox, InfiniBand controller
  functions=$((functions + 1))
done
# OFED's container creates this file (gpu-operator v26.7.0, cmd/nvidia-validator/main.go, runValidation of MOFED).
[[ -e /run/mellanox/drivers/.driver-ready ]] || problem "OFED is not loaded"
((functions)) || unknown "OFED is loaded, but the node has no InfiniBand function"
ok "OFED is loaded"
