# Reads the node's log since its last boot.
# shellcheck shell=bash

# Matches the begin of a kernel's line, from syslog (RFC 3164 or 5424) or dmesg. Another program's tag ends with a
# colon, or is one of the seven fields of RFC 5424 before the message. docker/aksnhc/node-log.sh has the same patterns.
readonly TAG='kernel(\[[0-9]+\])?(:| [0-9-]+ - (-|\[[^]]*\]))'
# shellcheck disable=SC2034
readonly KERNEL="^([^ ]*[^ :] +){0,4}(([^ ]*[^ :] +){0,2}$TAG.*|(\\[[^]]*\\] *)*)"

# entries PATTERN HOURS: sets the array $entries to the matching lines since the last boot. HOURS limits their age, and their number to
# the last 500; 0 means no limit. rsyslog's time is ISO 8601 on Ubuntu 24.04, and `Mon dd hh:mm:ss` before.
entries() {
  local pattern=$1 hours=$2 logs=${KERNEL_LOGS:?} name file line now seconds files=()
  local boot="^(([^ ]*[^ :] +){0,4}$TAG ?)?(\\[[^]]*\\] *)*Linux version " # not where another program quotes it
  for name in syslog messages; do # Ubuntu, others; the log may have been rotated since the boot
    for file in "$logs/$name.1" "$logs/$name"; do
      [[ -r $file && -s $file ]] && files+=("$file")
    done
    ((${#files[@]} == 0)) || break
  done
  ((${#files[@]})) || unknown "the node has no readable log in $logs (syslog or messages)"
  now=$(date +%s)
  entries=()
  while IFS= read -r line; do
    if [[ $line =~ $boot ]]; then
      entries=()
      continue
    fi
    if ((hours)); then
      if [[ ! $line =~ ^(<[0-9]+>)?(1\ )?([0-9]{4}-[0-9-]+T[^ ]+|[A-Z][a-z]{2}\ +[0-9]+\ [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?)\  ]] ||
        ! seconds=$(date -d "${BASH_REMATCH[3]}" +%s 2>/dev/null); then
        unknown "the time of this entry of the node's log cannot be read: $line"
      fi
      # In January, a December date without a year is last year's.
      ((seconds <= now + 86400)) || seconds=$(date -d "${BASH_REMATCH[3]} $(($(date +%Y) - 1))" +%s)
      ((seconds >= now - hours * 3600)) || continue
    fi
    entries+=("$line")
  done < <(grep -ahE "$boot|$pattern" "${files[@]}" | if ((hours)); then tail -n 500; else cat; fi)
}
