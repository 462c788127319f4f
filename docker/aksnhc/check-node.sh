#!/usr/bin/env bash
# Checks this node with aznhc; the last line of its output is the verdict, and its exit code verdict.sh's.
# Reads: CONFIGURATION (file with the checks), TIMEOUT_S (of all of them together), KERNEL_LOGS (the node's /var/log),
# NODE_NAME, and AZ_NHC_ROOT of the image.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
log=$AZ_NHC_ROOT/output/aznhc.log # the path that some of aznhc's tests read

mkdir -p "$(dirname "$log")"
: >"$log"

# Two tests look for errors of GPUs and links in the kernel's log; without it, they say that they are skipped.
for name in syslog messages; do
  if [[ -r $KERNEL_LOGS/$name ]]; then
    ln -sf "$KERNEL_LOGS/$name" "$AZ_NHC_ROOT/syslog"
    break
  fi
done

# check_nvme_count counts names in /dev, where a container sees its own devices only; sysfs shows all disks of the node.
for disk in /sys/block/nvme*n1; do
  [[ -e $disk && ! -e /dev/${disk##*/} ]] && ln -s "$disk" "/dev/${disk##*/}"
done

echo "Checking node $NODE_NAME"
# -a: all checks, also after one has failed; -v: each check is named in the log. The exit code says little: checks that do
# not exist, or fail in a subprocess, do not change it. So the log is judged.
nhc -a -v DETACHED_MODE=0 MARK_OFFLINE=0 CONFFILE="$CONFIGURATION" LOGFILE="$log" TIMEOUT="$TIMEOUT_S" ||
  echo "nhc ended with exit code $?"

exec bash "$here/verdict.sh" "$log" "$CONFIGURATION"
