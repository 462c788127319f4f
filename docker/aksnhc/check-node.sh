#!/usr/bin/env bash
# Checks this node with aznhc, and writes the result to the Node object.
# Exit code: verdict.sh's. In an init container (BEFORE_JOB=true), 0 for an unknown result too, which must not block the
# job, and 3 for a failed node that could not be tainted: the job would return to it.
# Reads: CONFIGURATION (file with the checks) or CHECKS (their text), TIMEOUT_S (of all checks), KERNEL_LOGS (the node's
# /var/log; empty if unreadable for the pod), NODE_NAME, AZ_NHC_ROOT of the image, and update-node.sh's variables.
# DEVICES (RESOURCE=COUNT ...): set for a check without devices, only of a node that offers fewer than these.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
output=$AZ_NHC_ROOT/output
log=$output/aznhc.log # some of aznhc's tests read this path
# Checks whose measurements may be low by chance: a second run must confirm them.
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
    echo "Node $NODE_NAME offers all of its devices: the check with devices checks it"
    exit 0
  fi
  echo "ERROR:  nhc:  Health check failed:  $lacking" | tee -a "$log"
fi

# Two checks read the node's log, and would pass if they cannot.
unread=""
if [[ -n ${KERNEL_LOGS:-} ]]; then
  hours=$(sed -n 's/.*|| *check_ib_link_flapping *\([0-9][0-9]*\).*/\1/p' "$CONFIGURATION" || true)
  XIDS=$(grep -c '|| *check_gpu_xid' "$CONFIGURATION" || true)
  export XIDS
  if unread=$(bash "$here/node-log.sh" "$KERNEL_LOGS" "${hours:-6}" "$AZ_NHC_ROOT/syslog" "$log" 2>&1); then
    unread=""
  fi
fi

# check_nvme_count counts names in /dev, where a container only has its own devices; sysfs shows all disks of the node.
for disk in /sys/block/nvme*n1; do
  [[ -e $disk && ! -e /dev/${disk##*/} ]] && ln -s "$disk" "/dev/${disk##*/}"
done

# Runs the checks of a configuration. -a runs all, also after a failure; -v logs their names. The exit code ignores
# missing checks and failures in subprocesses, so only the log is judged.
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
    echo "All failures may be chance: running these checks again"
    mv "$log" "$log.first"
    : >"$log"
    printf ' * || %s\n' "${failed//$'\n'/$'\n * || '}" >"$output/again.conf"
    run_checks "$output/again.conf"
    code=0 first=$verdict
    verdict=$(bash "$here/verdict.sh" "$log" "$output/again.conf") || code=$?
    if ((code == 0)); then # other results of the first run remain: checks that could not run are still unknown
      sed -e '/^ERROR: *nhc: *Health check failed:/{/NHCNA/!d}' \
        -e 's/^ERROR: *nhc: *[0-9]* health checks failed.*/Node Health Check completed successfully: what failed has run again/' \
        "$log.first" >"$log.rest"
      grep -h '^SUCCESS: ' "$log" >>"$log.rest" || true
      verdict=$(bash "$here/verdict.sh" "$log.rest" "$CONFIGURATION") || code=$?
      verdict=${verdict/PASS/PASS at the second run, at the first: $(head -n 1 <<<"$failed")}
    else
      verdict="${verdict%; *}; ${first##*; }" # the numbers of all checks
    fi
    cat "$log" >>"$log.first"
    mv "$log.first" "$log"
  fi
fi

is_updated=true
[[ -z ${TAINT_EFFECT:-} ]] || bash "$here/update-node.sh" "$code" "${verdict:0:1000}" "$log" || is_updated=false
echo "$verdict"
if [[ ${BEFORE_JOB:-} == true ]]; then
  ((code == 2)) && exit 0
  ((code == 1)) && [[ $is_updated == false ]] && exit 3
fi
exit "$code"
