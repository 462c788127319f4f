#!/usr/bin/env bash
# Checks this node with aznhc, and tells the node's object what was found.
# Exit code: verdict.sh's. As an init container (BEFORE_JOB=true) 0 also where nobody knows, which keeps no job from starting,
# and 3 for a node that failed and could not be tainted: the job would come back to it.
# Reads: CONFIGURATION (file with the checks) or CHECKS (their text), TIMEOUT_S (of all of them together), KERNEL_LOGS (the
# node's /var/log; empty where the pod may not see it), NODE_NAME, AZ_NHC_ROOT of the image, and what tell-node.sh reads.
# DEVICES (RESOURCE=COUNT ...): set for a check without devices. It checks the node only if that offers fewer devices than these.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
output=$AZ_NHC_ROOT/output
log=$output/aznhc.log # the path that some of aznhc's tests read
# What these measure may be low by chance, so a second run has to confirm it; a GPU that is missing is missing.
readonly CHANCE='check_(gpu_bw|nccl_allreduce|nccl_allreduce_ib_loopback|ib_bw_gdr)'

mkdir -p "$output"
: >"$log"
if [[ -n ${CHECKS:-} ]]; then
  CONFIGURATION=$output/aznhc.conf
  printf '%s\n' "$CHECKS" >"$CONFIGURATION"
fi

lacking=""
if [[ -n ${DEVICES:-} ]]; then
  read -ra devices <<<"$DEVICES"
  lacking=$(bash "$here/offers.sh" "${devices[@]}")
  if [[ -z $lacking ]]; then
    echo "Node $NODE_NAME offers all of its devices: a check that takes them checks it"
    exit 0
  fi
  echo "ERROR:  nhc:  Health check failed:  $lacking" | tee -a "$log"
fi

# Two checks read the node's log; of one that cannot be read they would say nothing, and so pass.
unread=""
if [[ -n ${KERNEL_LOGS:-} ]]; then
  hours=$(sed -n 's/.*|| *check_ib_link_flapping *\([0-9][0-9]*\).*/\1/p' "$CONFIGURATION" || true)
  XIDS=$(grep -c '|| *check_gpu_xid' "$CONFIGURATION" || true)
  export XIDS
  if unread=$(bash "$here/node-log.sh" "$KERNEL_LOGS" "${hours:-6}" "$AZ_NHC_ROOT/syslog" "$log" 2>&1); then
    unread=""
  fi
fi

# check_nvme_count counts names in /dev, where a container sees its own devices only; sysfs shows all disks of the node.
for disk in /sys/block/nvme*n1; do
  [[ -e $disk && ! -e /dev/${disk##*/} ]] && ln -s "$disk" "/dev/${disk##*/}"
done

# Runs the checks of a configuration.
# -a: all checks, also after one has failed; -v: each check is named in the log. The exit code says little: checks that do
# not exist, or fail in a subprocess, do not change it. So the log is judged.
run_checks() {
  nhc -a -v DETACHED_MODE=0 MARK_OFFLINE=0 CONFFILE="$1" LOGFILE="$log" TIMEOUT="$TIMEOUT_S" ||
    echo "nhc ended with exit code $?"
}

echo "Checking node $NODE_NAME"
run_checks "$CONFIGURATION"
if [[ -n $unread ]]; then
  for check in check_gpu_xid check_ib_link_flapping; do
    grep -qs "|| *$check" "$CONFIGURATION" || continue
    echo "ERROR:  nhc:  Health check failed:  $check: ${unread%%$'\n'*}. FaultCode: NHCNA" | tee -a "$log"
  done
fi

code=0
verdict=$(bash "$here/verdict.sh" "$log" "$CONFIGURATION") || code=$?
if ((code == 1)); then
  failed=$(bash "$here/verdict.sh" --failed "$log")
  if ! grep -qvE "^$CHANCE( |$)" <<<"$failed"; then
    echo "Only what may be chance has failed: once more"
    mv "$log" "$log.first"
    : >"$log"
    printf ' * || %s\n' "${failed//$'\n'/$'\n * || '}" >"$output/again.conf"
    run_checks "$output/again.conf"
    code=0 first=$verdict
    verdict=$(bash "$here/verdict.sh" "$log" "$output/again.conf") || code=$?
    if ((code == 0)); then # all else is as it was: what could not run is not known
      sed -e '/^ERROR: *nhc: *Health check failed:/{/NHCNA/!d}' \
        -e 's/^ERROR: *nhc: *[0-9]* health checks failed.*/Node Health Check completed successfully: what failed has run again/' \
        "$log.first" >"$log.rest"
      grep -h '^SUCCESS: ' "$log" >>"$log.rest" || true
      verdict=$(bash "$here/verdict.sh" "$log.rest" "$CONFIGURATION") || code=$?
      verdict=${verdict/PASS/PASS at the second run, at the first: $(head -n 1 <<<"$failed")}
    else
      verdict="${verdict%; *}; ${first##*; }" # of all checks, not of those that were run again
    fi
    cat "$log" >>"$log.first"
    mv "$log.first" "$log"
  fi
fi

told=true
[[ -z ${TAINT_EFFECT:-} ]] || bash "$here/tell-node.sh" "$code" "${verdict:0:1000}" "$log" || told=false
echo "$verdict"
if [[ ${BEFORE_JOB:-} == true ]]; then
  ((code == 2)) && exit 0
  ((code == 1)) && [[ $told == false ]] && exit 3
fi
exit "$code"
