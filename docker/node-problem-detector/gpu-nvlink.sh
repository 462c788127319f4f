#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Whether all NVLinks that the GPUs have are active.
source "$(dirname "$0")/lib.sh"

smi_or_unknown nvlink -s
wrong=()
gpu="" links=0
while IFS= read -r line; do
  if [[ $line =~ ^GPU\ ([0-9]+): ]]; then
    gpu=${BASH_REMATCH[1]}
  elif [[ $line =~ all\ links\ are\ in[Aa]ctive ]]; then
    wrong+=("all of GPU $gpu")
  elif [[ $line =~ Link\ ([0-9]+):\ (.*) ]]; then
    links=$((links + 1))
    [[ ${BASH_REMATCH[2]} != *inactive* ]] || wrong+=("${BASH_REMATCH[1]} of GPU $gpu")
  fi
done <<<"$found"
((${#wrong[@]} == 0)) || problem "inactive NVLinks: $(printf '%s\n' "${wrong[@]}" | paste -sd ',' -)"
((links)) || unknown "nvidia-smi tells of no NVLink: ${found%%$'\n'*}"
ok "all NVLinks are active"
