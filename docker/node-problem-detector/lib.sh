# What the checks share: how they tell what they found, and nvidia-smi.
# shellcheck shell=bash
# Exit codes are node-problem-detector's (pkg/custompluginmonitor/plugin/plugin.go of v1.34.0): 0 ok, 1 problem, 2 unknown.
# What it prints is the condition's message: the same words as long as the same is wrong, since others are another event.
set -euo pipefail

told=""
tell() {
  told=1
  echo "$2"
  exit "$1"
}
ok() { tell 0 "$*"; }
problem() { tell 1 "$*"; }
unknown() { tell 2 "$*"; }

# A check that fails itself ends with 1, as bash has it: that is no problem of the node.
trap '[[ $told ]] || { echo "the check ${0##*/} failed itself, see the log of its pod"; exit 2; }' EXIT

# The GPU operator's driver mounts its root there, with its /dev (NVIDIA/gpu-driver-container, ubuntu24.04/nvidia-driver,
# _mount_rootfs); gpu-operator v26.7.0, cmd/nvidia-validator/main.go, calls nvidia-smi the same way for its vGPU manager.
readonly DRIVER_ROOT=/run/nvidia/driver
has_driver() { [[ -e $DRIVER_ROOT/usr/bin/nvidia-smi ]]; }

# nvidia-smi ARGUMENTS...: its output in $found, its exit code in $code. One that hangs is killed by node-problem-detector
# with this script; one that not even that ends holds the lock, so that no second one comes to hang beside it.
smi() {
  has_driver || unknown "there is no GPU driver on the node"
  exec 9>"${TMPDIR:-/tmp}/${0##*/}.lock"
  flock --wait 10 9 || unknown "nvidia-smi hangs"
  code=0
  found=$(chroot "$DRIVER_ROOT" nvidia-smi "$@" 2>&1 </dev/null) || code=$?
}

# The same, for what cannot be told unless it succeeds.
smi_or_unknown() {
  smi "$@"
  ((code == 0)) || unknown "nvidia-smi ended with exit code $code: ${found%%$'\n'*}"
}
