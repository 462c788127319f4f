#!/usr/bin/env bash
# Notes what it is asked, and answers as REFUSAL says, or with the keys of the node's taints.
printf '%s\0' "$@" >>"$HERE/asked"; printf '\n\0' >>"$HERE/asked"
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
