#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Whether a link was lost TIMES times within HOURS: once is no flapping. Usage: infiniband-flaps.sh TIMES HOURS
here=$(dirname "$0")
source "$here/lib.sh"
source "$here/log.sh"

# systemd-networkd, of the links over InfiniBand: on AKS ibP257s154020 and the like, by domain and slot of their PCI function
# (Azure/aks-rdma-infiniband, configs/nicclusterpolicy/ipoib/ipoib-network.yaml; microsoft/lisa, lisa/tools/ip.py).
entries '[^A-Za-z0-9]ib[A-Za-z0-9_.]*: [Ll]ost carrier' "$2"
declare -A lost=()
for line in "${entries[@]}"; do
  [[ $line =~ [^A-Za-z0-9](ib[A-Za-z0-9_.]*):\ [Ll]ost\ carrier ]] || continue
  lost[${BASH_REMATCH[1]}]=$((${lost[${BASH_REMATCH[1]}]:-0} + 1))
done
flapping=()
for link in "${!lost[@]}"; do
  ((lost[$link] < $1)) || flapping+=("$link")
done
((${#flapping[@]})) || ok "no link was lost $1 times within $2 hours"
problem "links that were lost $1 times or more within $2 hours: $(printf '%s\n' "${flapping[@]}" | sort | paste -sd ',' -)"
