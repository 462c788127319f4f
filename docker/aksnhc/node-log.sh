#!/usr/bin/env bash
# Hands what the node has logged of GPU errors and lost links to the two checks of aznhc that read it, in the form that they
# read. Both are blind on a node of today (customTests/azure_gpu_xid.nhc and azure_ib_link_flapping.nhc of v0.4.5):
#   check_gpu_xid reads `Mon dd hh:mm:ss`, where rsyslog of Ubuntu 24.04 writes ISO 8601: it takes each error for an old one;
#   check_ib_link_flapping compares the last event with that of an earlier run, of which a new pod has no log.
# aznhc's list of Xids ends at 120 and has no SXids. This script logs the others as failures of check_gpu_xid.
# Usage: [XIDS=0] node-log.sh LOGS HOURS SYSLOG HISTORY
#   LOGS: the node's /var/log; HOURS: older entries are left out; SYSLOG: written for both checks; HISTORY: aznhc's log, to
#   which goes the first time that a link which was lost twice was lost, as an earlier run would have noted it.
#   XIDS: 0 where check_gpu_xid does not run
# Exit code: 1 if the node has no log that can be read; the reason is printed.
set -euo pipefail
export LC_ALL=C

logs=$1 hours=$2 syslog=$3 history=$4
readonly TAG='kernel(\[[0-9]+\])?(:| [0-9-]+ - (-|\[[^]]*\]))' # these three as docker/node-problem-detector/log.sh has them; a job can print such words, too
readonly BOOT="^(([^ ]*[^ :] +){0,4}$TAG ?)?(\\[[^]]*\\] *)*Linux version "
readonly KERNEL="^([^ ]*[^ :] +){0,4}(([^ ]*[^ :] +){0,2}$TAG.*|(\\[[^]]*\\] *)*)"
# Words of the driver for a GPU that is lost or has to be reset, without an Xid.
readonly SILENT='NVRM: ([^X].*)?(fallen off the bus|lost from the bus|NV_ERR_GPU_IS_LOST|[Rr]eset required|[Rr]equires reset|NV_ERR_RESET_REQUIRED|need to be reset)'
# Xids that require a reset and are not in aznhc's list (docker/node-problem-detector/xids.txt), and fatal errors of NVLink.
readonly BEYOND='NVRM: Xid \([^)]*\): ((46|95|109|110|136|140|143|156|158),|1(4[4-9]|50), [A-Za-z0-9_]+ Fatal)|SXid \([^)]*\): [0-9]+, Fatal'"|$SILENT"
readonly LOST='(^|[^a-z0-9])ib[a-z0-9_.]*: lost carrier' # systemd-networkd, of the links over InfiniBand
most=2000                                              # of so many entries the last are read

files=()
for name in syslog messages; do # Ubuntu, others; the one before may have been put aside within these hours
  [[ -r $logs/$name ]] || continue
  for file in "$logs/$name.1" "$logs/$name"; do
    [[ -r $file && -s $file ]] && files+=("$file") # an empty one shows nothing: not even the node's boot
  done
  break
done
if ((${#files[@]} == 0)); then
  echo "the node has no log in $logs (syslog or messages), or an empty one"
  exit 1
fi

now=$(date +%s)
entries=""
while IFS= read -r line; do
  if [[ $line =~ $BOOT ]]; then # what was before this boot is over
    entries=""
    continue
  fi
  if [[ ! $line =~ ^(<[0-9]+>)?(1\ )?([0-9]{4}-[0-9-]+T[^ ]+|[A-Z][a-z]{2}\ +[0-9]+\ [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?)\ (.*) ]] ||
    ! seconds=$(date -d "${BASH_REMATCH[3]}" +%s 2>/dev/null); then
    echo "the time of this entry of the node's log cannot be read: $line"
    exit 1
  fi
  ((seconds > now + 86400)) && seconds=$(date -d "${BASH_REMATCH[3]} $(($(date +%Y) - 1))" +%s) # without a year: of last year
  ((seconds < now - hours * 3600)) || entries+="$(date -d "@$seconds" '+%b %e %T') ${BASH_REMATCH[5]}"$'\n'
done < <(grep -ahiE "$BOOT|$KERNEL(NVRM: Xid|[a-z0-9-]*:? ?SXid|$SILENT)|$LOST" "${files[@]}" | tail -n "$most")

# The driver logs the recovery action that a GPU needs as Xid 154. It is valid until the next Xid 154 of that GPU, or the next boot.
needs=$(grep -ahE "$BOOT|${KERNEL}NVRM: Xid \(.*\): 154, " "${files[@]}" | awk '
  /Linux version / { split("", last); next }
  match($0, /Xid \([^)]*\)/) { last[substr($0, RSTART, RLENGTH)] = $0 }
  END { for (gpu in last) if (last[gpu] !~ / to 0x0+([^0-9a-f]|$)/) print last[gpu] }' || true)
for line in "$needs" "$(grep -E "$BEYOND" <<<"$entries" | tail -n 1 || true)"; do
  [[ -z $line || ${XIDS:-1} == 0 ]] || echo "ERROR:  nhc:  Health check failed:  check_gpu_xid: ${line%%$'\n'*}. FaultCode: NHC2001" >>"$history"
done

# Links that were lost once are left out: that is no flapping.
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
  if [[ $noted == "$month $day $time" ]]; then # within one second, which the check would take for one event
    noted=$(date -d "@$(($(date -d "$noted" +%s) - 1))" '+%b %-d %T')
  fi
  echo "Linkflap event:$noted" >>"$history"
fi
