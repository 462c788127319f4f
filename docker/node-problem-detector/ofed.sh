#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Whether OFED is loaded on a node that has functions of InfiniBand.
source "$(dirname "$0")/lib.sh"

functions=0
for device in /sys/bus/pci/devices/*; do
  [[ $(<"$device/vendor") == 0x15b3 && $(<"$device/class") == 0x0207* ]] || continue # Mellanox, InfiniBand controller
  functions=$((functions + 1))
done
# Its container's own mark (gpu-operator v26.7.0, cmd/nvidia-validator/main.go, runValidation of MOFED).
[[ -e /run/mellanox/drivers/.driver-ready ]] || problem "OFED is not loaded"
((functions)) || unknown "OFED is loaded, but the node shows no function of InfiniBand"
ok "OFED is loaded"
