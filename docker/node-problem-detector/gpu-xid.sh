#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Whether NVIDIA's driver has logged errors of GPUs (Xids) of a severity: critical ones since the node's boot, for nothing else
# ends them; others, most of which are a job's own, within the hour. What is in a packed log is not seen: on AKS that is after
# one or two days (Azure/AgentBaker, parts/linux/cloud-init/artifacts/aks-rsyslog). Usage: gpu-xid.sh critical|warning
here=$(dirname "$0")
source "$here/lib.sh"
source "$here/log.sh"

severity=$1
[[ $severity == critical || $severity == warning ]] || unknown "there is no severity $severity: critical, warning"
declare -A critical=()
while read -r number _; do
  [[ $number == [0-9]* ]] && critical[$number]=1
done <"$here/xids.txt"

hours=0
[[ $severity == critical ]] || hours=1
entries 'NVRM: Xid \(' "$hours"

declare -A seen=()
for line in "${entries[@]}"; do
  [[ $line =~ NVRM:\ Xid\ \(PCI:([^\)]*)\):\ ([0-9]+) ]] || continue
  gpu=${BASH_REMATCH[1]} number=${BASH_REMATCH[2]}
  is=warning
  [[ -z ${critical[$number]:-} ]] || is=critical
  [[ $is != "$severity" ]] || seen["$number of GPU $gpu"]=1
done
((${#seen[@]})) || ok "no Xid that is $severity"
found=$(printf '%s\n' "${!seen[@]}" | sort -n | paste -sd ';' -)
problem "Xid ${found//;/, }"
