#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Checks whether hardware or driver slow down a GPU that is too hot.
source "$(dirname "$0")/lib.sh"

reasons=clocks_event_reasons
smi_or_unknown --query-gpu="index,$reasons.hw_thermal_slowdown,$reasons.sw_thermal_slowdown" --format=csv,noheader
wrong=()
while IFS=, read -r gpu hardware software; do
  case "$hardware,$software" in
    *"requires reset"*) unknown "GPU $gpu requires a reset" ;;
    " Not Active, Not Active") ;;
    *" Active"*) wrong+=("$gpu") ;;
    *) unknown "GPU $gpu does not report the reasons for its clocks:$hardware,$software" ;;
  esac
done <<<"$found"
((${#wrong[@]} == 0)) || problem "GPUs that are too hot: $(printf '%s\n' "${wrong[@]}" | paste -sd ',' -)"
ok "no GPU is too hot"
