#!/usr/bin/env bash
# Records its arguments. Fails with REFUSAL, or prints the keys of the node's taints.
printf '%s\0' "$@" >>"$HERE/commands"; printf '\n\0' >>"$HERE/commands"
echo >>"$HERE/calls"
[[ -z ${REFUSAL:-} ]] || (($(wc -l <"$HERE/calls") > ${REFUSALS:-99})) || { echo "$REFUSAL" >&2; exit 1; }
if [[ $* == *go-template* ]]; then
  read -ra all <<<"$DEVICES"
  for index in "${!all[@]}"; do
    [[ $* != *"${all[index]%=*}"* ]] || cut -d ' ' -f "$((2 * index + 1)),$((2 * index + 2))" <<<"$OFFERS"
  done
elif [[ $1 == get ]]; then
  echo "${TAINTS:-sku}"
fi
