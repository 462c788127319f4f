#!/usr/bin/env bash
# Checks this node with aznhc; the last line of its output is the verdict, and its exit code verdict.sh's.
# Reads: CONFIGURATION (file with the checks), TIMEOUT_S (of all of them together), KERNEL_LOGS (the node's /var/log),
# NODE_NAME, and AZ_NHC_ROOT of the image.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
log=$AZ_NHC_ROOT/output/aznhc.log # the path that some of aznhc's tests read

mkdir -p "$(dirname "$log")"
: >"$log"

# Two checks read the node's log; of one that cannot be read they would say nothing, and so pass.
hours=$(sed -n 's/.*|| *check_ib_link_flapping *\([0-9][0-9]*\).*/\1/p' "$CONFIGURATION" || true)
if unread=$(bash "$here/node-log.sh" "$KERNEL_LOGS" "${hours:-6}" "$AZ_NHC_ROOT/syslog" "$log" 2>&1); then
  unread=""
fi

# check_nvme_count counts names in /dev, where a container sees its own devices only; sysfs shows all disks of the node.
for disk in /sys/block/nvme*n1; do
  [[ -e $disk && ! -e /dev/${disk##*/} ]] && ln -s "$disk" "/dev/${disk##*/}"
done

echo "Checking node $NODE_NAME"
# -a: all checks, also after one has failed; -v: each check is named in the log. The exit code says little: checks that do
# not exist, or fail in a subprocess, do not change it. So the log is judged.
nhc -a -v DETACHED_MODE=0 MARK_OFFLINE=0 CONFFILE="$CONFIGURATION" LOGFILE="$log" TIMEOUT="$TIMEOUT_S" ||
  echo "nhc ended with exit code $?"

if [[ -n $unread ]]; then
  for check in check_gpu_xid check_ib_link_flapping; do
    grep -qs "|| *$check" "$CONFIGURATION" || continue
    echo "ERROR:  nhc:  Health check failed:  $check: ${unread%%$'\n'*}. FaultCode: NHCNA" | tee -a "$log"
  done
fi

exec bash "$here/verdict.sh" "$log" "$CONFIGURATION"
