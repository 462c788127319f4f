# Common functions of the checks: reporting the result, and running nvidia-smi.
# shellcheck shell=bash
# Exit codes are node-problem-detector's (pkg/custompluginmonitor/plugin/plugin.go of v1.34.0): 0 ok, 1 problem, 2
# unknown.
# The output is the condition's message, which must not change with the same problem: each new text is another event.
set -euo pipefail

reported=""
report() {
  reported=1
  echo "$2"
  exit "$1"
}
ok() { report 0 "$*"; }
problem() { report 1 "$*"; }
unknown() { report 2 "$*"; }

# An error in a check ends it with 1, which must not count as the node's problem.
trap '[[ $reported ]] || { echo "check ${0##*/} has an error, see the log of its pod"; exit 2; }' EXIT

# The GPU operator's driver mounts its root there, with /dev (NVIDIA/gpu-driver-container, ubuntu24.04/nvidia-driver,
# _mount_rootfs); gpu-operator v26.7.0, cmd/nvidia-validator/main.go, calls nvidia-smi the same way for its vGPU manager.
readonly DRIVER_ROOT=/run/nvidia/driver
has_driver() { [[ -e $DRIVER_ROOT/usr/bin/nvidia-smi ]]; }

# smi ARGUMENTS...: runs nvidia-smi; sets $found to its output and $code to its exit code. If it hangs,
# node-problem-detector kills it with this script. If it survives, it keeps the lock, so that no second process hangs
# too.
smi() {
  has_driver || unknown "the node has no GPU driver"
  exec 9>"${TMPDIR:-/tmp}/${0##*/}.lock"
  flock --wait 10 9 || unknown "nvidia-smi hangs"
  code=0
  found=$(chroot "$DRIVER_ROOT" nvidia-smi "$@" 2>&1 </dev/null) || code=$?
}

# Runs nvidia-smi; the check is unknown if it fails.
smi_or_unknown() {
  smi "$@"
  ((code == 0)) || unknown "nvidia-smi ended with exit code $code: ${found%%$'\n'*}"
}
