#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Whether NVIDIA's driver is on the node, and loaded.
source "$(dirname "$0")/lib.sh"

has_driver || problem "the GPU operator's driver does not run on the node"
smi -L
# Of nvidia-smi's exit codes, which are NVML's (nvmlReturn_t): 9, the driver is not loaded; 12 and 13, its library is not there,
# or another's; 18, driver and library are of different versions (seen as such: anderskm/gputil#55).
case $code in
  9 | 12 | 13 | 18) problem "the GPU driver is not loaded: ${found%%$'\n'*}" ;;
esac
ok "the GPU driver is loaded"
