#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Checks that all InfiniBand ports of the VM size are active, or that active ports have their full rate.
# Usage: infiniband.sh active COUNT | infiniband.sh rate GBPS
source "$(dirname "$0")/lib.sh"

[[ $1 == active || $1 == rate ]] || unknown "unknown check $1; allowed: active, rate"
ports=0 active=0 down=() slow=()
for port in /sys/class/infiniband/*/ports/*; do
  [[ -r $port/link_layer && $(<"$port/link_layer") == InfiniBand ]] || continue
  hca=${port#/sys/class/infiniband/} && hca=${hca%%/*}
  ports=$((ports + 1))
  state=$(<"$port/state") physical=$(<"$port/phys_state")
  if [[ $state != *ACTIVE || $physical != *LinkUp ]]; then
    down+=("$hca is ${state#*: }, ${physical#*: }")
    continue
  fi
  active=$((active + 1))
  read -r rate _ <"$port/rate"
  [[ $1 != rate ]] || ((${rate%.*} >= $2)) || slow+=("$hca runs at $rate of $2 Gb/s")
done
((ports)) || unknown "the node has no InfiniBand port: its driver is missing or being replaced"
if [[ $1 == active ]]; then
  ((${#down[@]} == 0)) || problem "$(printf '%s\n' "${down[@]}" | paste -sd ';' -)"
  ((ports == $2)) || problem "$ports of $2 InfiniBand ports are there"
  ok "all $2 InfiniBand ports are active"
fi
((active)) || unknown "no InfiniBand port is active"
((${#slow[@]} == 0)) || problem "$(printf '%s\n' "${slow[@]}" | paste -sd ';' -)"
ok "all active InfiniBand ports run at $2 Gb/s"
