#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Checks that all NVLinks of the GPUs are active, except those never used by a product (nvlinks.txt).
here=$(dirname "$0")
source "$here/lib.sh"

declare -A unused=()
while IFS=$'\t' read -r product count; do
  [[ $product == '#'* ]] || unused[$product]=$count
done <"$here/nvlinks.txt"

smi_or_unknown nvlink -s
wrong=()
gpu="" links=0 before=0 inactive=()

# Ends a GPU's list of links.
end_of_gpu() {
  ((${#inactive[@]} <= ${unused[${product:-none}]:-0})) || wrong+=("${inactive[@]}")
  [[ -z $gpu ]] || ((links > before)) || wrong+=("all of GPU $gpu")
  before=$links inactive=()
}
while IFS= read -r line; do
  if [[ $line =~ ^GPU\ ([0-9]+):\ *([^\(]*) ]]; then
    end_of_gpu
    gpu=${BASH_REMATCH[1]} product=${BASH_REMATCH[2]% }
  elif [[ $line == *"Unable to determine the device handle"* ]]; then
    unknown "nvidia-smi does not report all GPUs: $line"
  elif [[ $line == *"requires reset"* ]]; then
    problem "GPU $gpu requires a reset"
  elif [[ $line =~ [Aa]ll\ links\ are\ in[Aa]ctive ]]; then
    links=$((links + 1))
    wrong+=("all of GPU $gpu")
  elif [[ $line =~ Link\ ([0-9]+):\ (.*) ]]; then
    links=$((links + 1)) link=${BASH_REMATCH[1]}
    [[ ${BASH_REMATCH[2]} =~ ^[0-9.]*[1-9][0-9.]*\ *[GM] ]] || inactive+=("$link of GPU $gpu")
  fi
done <<<"$found"
end_of_gpu
((links)) || unknown "nvidia-smi reports no NVLink: ${found%%$'\n'*}"
((${#wrong[@]} == 0)) || problem "inactive NVLinks: $(printf '%s\n' "${wrong[@]}" | paste -sd ',' -)"
ok "all NVLinks are active"
