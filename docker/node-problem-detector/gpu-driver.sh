#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Checks that the node has NVIDIA's driver, and that it is loaded.
source "$(dirname "$0")/lib.sh"

has_driver || problem "the GPU operator's driver does not run on the node"
smi -L
# nvidia-smi's exit codes are NVML's (nvmlReturn_t): 9, the driver is not loaded; 12 and 13, its library is missing or
# wrong; 18, driver and library have different versions (anderskm/gputil#55).
case $code in
  9 | 12 | 13 | 18) problem "the GPU driver is not loaded: ${found%%$'\n'*}" ;;
esac
ok "the GPU driver is loaded"
