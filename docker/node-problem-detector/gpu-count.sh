#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Checks that the driver finds all GPUs of the VM size. Usage: gpu-count.sh COUNT
source "$(dirname "$0")/lib.sh"

expected=$1
smi -L
lost=$(grep -m 1 "Unable to determine the device handle" <<<"$found") || true
[[ -z $lost ]] || problem "a GPU is lost: $lost"
case $code in
  0) ;;
  6) problem "none of $expected GPUs are there: ${found%%$'\n'*}" ;;
  *) unknown "nvidia-smi ended with exit code $code: ${found%%$'\n'*}" ;;
esac
! grep -q "requires reset" <<<"$found" || problem "a GPU requires a reset: $(grep -m 1 "requires reset" <<<"$found")"
count=$(grep -c '^GPU [0-9]*: .*(UUID: ' <<<"$found") || true # partitions (MIG) are lines below their GPU's
((count == expected)) || problem "$count of $expected GPUs are there"
ok "all $expected GPUs are there"
