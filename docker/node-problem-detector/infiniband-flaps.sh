#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Whether a link was lost TIMES times within HOURS: once is no flapping. Usage: infiniband-flaps.sh TIMES HOURS
here=$(dirname "$0")
source "$here/lib.sh"
source "$here/log.sh"

entries '[^a-z0-9]ib[a-z0-9_.]*: [Ll]ost carrier' "$2" # systemd-networkd, of the links over InfiniBand
declare -A lost=()
for line in "${entries[@]}"; do
  [[ $line =~ [^a-z0-9](ib[a-z0-9_.]*):\ [Ll]ost\ carrier ]] && lost[${BASH_REMATCH[1]}]=$((${lost[${BASH_REMATCH[1]}]:-0} + 1))
done
flapping=()
for link in "${!lost[@]}"; do
  ((lost[$link] < $1)) || flapping+=("$link")
done
((${#flapping[@]})) || ok "no link was lost $1 times within $2 hours"
problem "links that were lost $1 times or more within $2 hours: $(printf '%s\n' "${flapping[@]}" | sort | paste -sd ',' -)"
