#!/usr/bin/env bash
# Copies one file into the container, unless a blob of its size exists. Continues an earlier try.
# Usage: prepare-file.sh URL. Writes "bytes<tab>path" to $STAGING/done. Reads: the variables of prepare-blob.sh, and BLOCK_BYTES.
# Exit code: 0 if the blob has the file's size; 255 if the SAS is rejected, which fails for all files.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=workloads/olmo/scripts/dataset.sh
. "$here/dataset.sh"
# shellcheck source=workloads/olmo/scripts/prepare-blob.sh
. "$here/prepare-blob.sh"

url=$1
path=$(path_of "$url")
name=${path//\//,}
scratch=$STAGING/$name
trap 'rm -f "$scratch".*' EXIT

"${CURL[@]}" --fail --location --head --output "$scratch.source" "$url"
bytes=$(header content-length "$scratch.source")
[[ $bytes =~ ^[0-9]+$ ]] || { echo "$url: the source does not report its size" >&2 && exit 1; }
# A changed source has another tag, so its blocks never mix with those of the old one.
version=$(printf '%s %s %s' "$(header etag "$scratch.source")" "$bytes" "$BLOCK_BYTES" | cksum)

copy() {
  local first last id ids=() staged
  staged=" $(staged_blocks "$path" | tr '\n' ' ') "
  for ((first = 0; first < bytes; first += BLOCK_BYTES)); do
    last=$((first + BLOCK_BYTES < bytes ? first + BLOCK_BYTES - 1 : bytes - 1))
    id=$(printf '%09d%012d' $((first / BLOCK_BYTES)) "${version%% *}" | base64) # digits need no escaping
    ids+=("$id")
    [[ $staged == *" $id "* ]] || stage_block "$path" "$id" "$url" "$first" "$last"
  done
  commit "$path" "${ids[@]}"
  echo "copied $path: $bytes bytes in ${#ids[@]} blocks"
}

have=$(blob_bytes "$path")
if [[ $have == "$bytes" ]]; then
  echo "exists: $path, $bytes bytes"
else
  [[ -z $have ]] || echo "wrong size: $path has $have bytes instead of $bytes; copying it again"
  copy
  have=$(blob_bytes "$path")
  [[ $have == "$bytes" ]] || { echo "$path has ${have:-no} bytes after copying instead of $bytes" >&2 && exit 1; }
fi
mkdir -p "$STAGING/done"
printf '%s\t%s\n' "$bytes" "$path" >"$STAGING/done/$name"
