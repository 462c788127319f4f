#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Checks whether a link was lost TIMES times within HOURS; once is not flapping. Usage: infiniband-flaps.sh TIMES HOURS
# It reads three sources. systemd-networkd, or NetworkManager, logs lost links only with an address (IP over
# InfiniBand). A port's counter link_downed also grows without one; for virtual functions it may stay 0. Kernels from
# 6.12, and NVIDIA's drivers, log each port that goes down, of Ethernet too (drivers/infiniband/core/cache.c).
here=$(dirname "$0")
source "$here/lib.sh"
source "$here/log.sh"
times=$1 hours=$2
sys=${SYSFS:-/sys} # tests replace it

# The last run's counters, and when they grew: lines `port <device>/<port> COUNT` and `grew <device>/<port> TIME BY`.
# The file lasts as long as the pod. The first run only records a baseline.
memory=${TMPDIR:-/tmp}/infiniband-flaps
now=$(date +%s)
declare -A last=() grown=()
kept=()
if [[ -r $memory ]]; then
  while read -r kind port first by; do
    if [[ $kind == port && $first =~ ^[0-9]+$ ]]; then
      last[$port]=$first
    elif [[ $kind == grew && $first =~ ^[0-9]+$ && $by =~ ^[0-9]+$ ]] && ((first >= now - hours * 3600)); then
      kept+=("grew $port $first $by")
      grown[$port]=$((${grown[$port]:-0} + by))
    fi
  done <"$memory"
fi
for counter in "$sys"/class/infiniband/*/ports/*/counters/link_downed; do
  port=${counter%/counters/*}
  [[ -r $counter && -r $port/link_layer && $(<"$port/link_layer") == InfiniBand ]] || continue
  count=$(cat "$counter" 2>/dev/null) && [[ $count =~ ^[0-9]+$ ]] || continue # some functions have the file but cannot read it
  port=${port#"$sys"/class/infiniband/} && port=${port/\/ports\//\/}
  by=0
  if [[ -n ${last[$port]:-} ]]; then
    # After a reload of the driver, the counter starts at 0.
    by=$((count >= last[$port] ? count - last[$port] : count))
  fi
  if ((by)); then
    kept+=("grew $port $now $by")
    grown[$port]=$((${grown[$port]:-0} + by))
  fi
  kept+=("port $port $count")
done
printf '%s\n' "${kept[@]}" >"$memory.new"
mv "$memory.new" "$memory"

# On AKS these links are ibP257s154020 and the like, by their PCI function's domain and slot (Azure/aks-rdma-infiniband,
# configs/nicclusterpolicy/ipoib/ipoib-network.yaml; microsoft/lisa, lisa/tools/ip.py).
declare -A lost=()
for port in "${!grown[@]}"; do
  lost[${port%/1}]=${grown[$port]}
done
flapping() {
  local link found=()
  for link in "${!lost[@]}"; do
    ((lost[$link] < times)) || found+=("$link")
  done
  ((${#found[@]} == 0)) ||
    problem "links that were lost $times times or more within $hours hours: $(printf '%s\n' "${found[@]}" | sort | paste -sd ',' -)"
}

[[ -r $KERNEL_LOGS/syslog || -r $KERNEL_LOGS/messages ]] || flapping # report the counters also if the log cannot be read
entries '[^A-Za-z0-9]ib[A-Za-z0-9_.]*\)?: ([Ll]ost carrier|carrier: link disconnected|[Ll]ink down)|: Port: [0-9]+ Link DOWN' "$hours"
declare -A logged=()
for line in "${entries[@]}"; do
  if [[ $line =~ \ ([A-Za-z0-9_]+):\ Port:\ ([0-9]+)\ Link\ DOWN ]]; then
    link=${BASH_REMATCH[1]} words=port
    layer=$sys/class/infiniband/$link/ports/${BASH_REMATCH[2]}/link_layer
    if [[ -r $layer ]]; then [[ $(<"$layer") == InfiniBand ]] || continue; fi
    [[ ! $link =~ ^roce|_(an|eth) ]] || continue
  elif [[ $line =~ [^A-Za-z0-9](ib[A-Za-z0-9_.]*)\)?:\ ([Ll]ost\ carrier|carrier:\ link\ disconnected|[Ll]ink\ down) ]]; then
    link=${BASH_REMATCH[1]} words=${BASH_REMATCH[2]}
  else
    continue
  fi
  count=1
  [[ ! $line =~ message\ repeated\ ([0-9]+)\ times ]] || count=${BASH_REMATCH[1]}
  logged["$link $words"]=$((${logged["$link $words"]:-0} + count))
done
for key in "${!logged[@]}"; do # counters and several programs may report the same losses
  link=${key%% *}
  ((logged["$key"] <= ${lost[$link]:-0})) || lost[$link]=${logged["$key"]}
done
flapping
ok "no link was lost $times times within $hours hours"
