#!/usr/bin/env bash
# Converts the node's log entries about GPU errors and lost links for the two checks of aznhc that read them. Without this, both find
# nothing on current nodes (customTests/azure_gpu_xid.nhc and azure_ib_link_flapping.nhc of v0.4.5):
#   check_gpu_xid expects `Mon dd hh:mm:ss`, but rsyslog of Ubuntu 24.04 writes ISO 8601: every error looks old;
#   check_ib_link_flapping compares the last event with an earlier run, but a new pod has no log of one.
# aznhc's list of Xids ends at 120 and has no SXids. This script logs the others as failures of check_gpu_xid.
# Usage: [XIDS=0] node-log.sh LOGS HOURS SYSLOG HISTORY
#   LOGS: the node's /var/log; HOURS: maximum age of entries; SYSLOG: output for both checks; HISTORY: aznhc's log. If a link was lost
#   twice, the script adds the first time there, as an earlier run would have done.
#   XIDS: 0 if check_gpu_xid does not run
# Exit code: 1 if the node has no readable log; prints the reason.
set -euo pipefail
export LC_ALL=C

logs=$1 hours=$2 syslog=$3 history=$4
# docker/node-problem-detector/log.sh has the same three patterns. They exclude the output of jobs, which may have such
# words.
readonly TAG='kernel(\[[0-9]+\])?(:| [0-9-]+ - (-|\[[^]]*\]))'
readonly BOOT="^(([^ ]*[^ :] +){0,4}$TAG ?)?(\\[[^]]*\\] *)*Linux version "
readonly KERNEL="^([^ ]*[^ :] +){0,4}(([^ ]*[^ :] +){0,2}$TAG.*|(\\[[^]]*\\] *)*)"
# The driver's messages about a GPU that is lost or needs a reset, without an Xid.
readonly SILENT='NVRM: ([^X].*)?(fallen off the bus|lost from the bus|NV_ERR_GPU_IS_LOST|[Rr]eset required|[Rr]equires reset|NV_ERR_RESET_REQUIRED|need to be reset)'
# Xids that require a reset and are not in aznhc's list (docker/node-problem-detector/xids.txt), and fatal errors of NVLink.
readonly BEYOND='NVRM: Xid \([^)]*\): ((46|95|109|110|136|140|143|156|158),|1(4[4-9]|50), [A-Za-z0-9_]+ Fatal)|SXid \([^)]*\): [0-9]+, Fatal'"|$SILENT"
readonly LOST='(^|[^a-z0-9])ib[a-z0-9_.]*: lost carrier' # systemd-networkd, of the links over InfiniBand
most=2000                                              # the maximum number of entries, the last ones

files=()
for name in syslog messages; do # Ubuntu, others; the log may have been rotated within these hours
  [[ -r $logs/$name ]] || continue
  for file in "$logs/$name.1" "$logs/$name"; do
    [[ -r $file && -s $file ]] && files+=("$file") # an empty file does not even show the node's boot
  done
  break
done
if ((${#files[@]} == 0)); then
  echo "the node's log in $logs (syslog or messages) is missing or empty"
  exit 1
fi

now=$(date +%s)
entries=""
while IFS= read -r line; do
  if [[ $line =~ $BOOT ]]; then # earlier entries are obsolete
    entries=""
    continue
  fi
  if [[ ! $line =~ ^(<[0-9]+>)?(1\ )?([0-9]{4}-[0-9-]+T[^ ]+|[A-Z][a-z]{2}\ +[0-9]+\ [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?)\ (.*) ]] ||
    ! seconds=$(date -d "${BASH_REMATCH[3]}" +%s 2>/dev/null); then
    echo "the time of this entry of the node's log cannot be read: $line"
    exit 1
  fi
  ((seconds > now + 86400)) && seconds=$(date -d "${BASH_REMATCH[3]} $(($(date +%Y) - 1))" +%s) # no year: it is last year's
  ((seconds < now - hours * 3600)) || entries+="$(date -d "@$seconds" '+%b %e %T') ${BASH_REMATCH[5]}"$'\n'
done < <(grep -ahiE "$BOOT|$KERNEL(NVRM: Xid|[a-z0-9-]*:? ?SXid|$SILENT)|$LOST" "${files[@]}" | tail -n "$most")

# The driver logs the recovery action that a GPU needs as Xid 154. It is valid until that GPU's next Xid 154, or the
# next boot.
needs=$(grep -ahE "$BOOT|${KERNEL}NVRM: Xid \(.*\): 154, " "${files[@]}" | awk '
  /Linux version / { split("", last); next }
  match($0, /Xid \([^)]*\)/) { last[substr($0, RSTART, RLENGTH)] = $0 }
  END { for (gpu in last) if (last[gpu] !~ / to 0x0+([^0-9a-f]|$)/) print last[gpu] }' || true)
for line in "$needs" "$(grep -E "$BEYOND" <<<"$entries" | tail -n 1 || true)"; do
  [[ -z $line || ${XIDS:-1} == 0 ]] || echo "ERROR:  nhc:  Health check failed:  check_gpu_xid: ${line%%$'\n'*}. FaultCode: NHC2001" >>"$history"
done

# A link that was lost only once is not flapping.
flapping=$(grep -ioE "$LOST" <<<"$entries" | grep -ioE 'ib[a-z0-9_.]*:' | sort | uniq -d || true)
lost=""
[[ -z $flapping ]] || lost=$(grep -iE "$LOST" <<<"$entries" | grep -F "$flapping")
{
  grep -i "NVRM: Xid" <<<"$entries" || true
  [[ -z $lost ]] || echo "$lost"
} >"$syslog"
if [[ -n $lost ]]; then
  read -r month day time _ <<<"$lost"
  noted="$month $day $time"
  read -r month day time _ <<<"${lost##*$'\n'}"
  if [[ $noted == "$month $day $time" ]]; then # the check treats two events of one second as one
    noted=$(date -d "@$(($(date -d "$noted" +%s) - 1))" '+%b %-d %T')
  fi
  echo "Linkflap event:$noted" >>"$history"
fi
