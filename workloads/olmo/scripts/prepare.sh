#!/usr/bin/env bash
# Copies the data files that a training config names into the data container. When all are there, each of the size that its
# source tells, it writes the manifest that the training waits for. Run again, it copies only what is missing.
# Reads: what dataset.sh and prepare-blob.sh do; PARALLEL, BLOCK_BYTES, HEARTBEAT_S (defaults below).
# Exit code: 0 complete; 64 for what another try would not mend; 1 else.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=workloads/olmo/scripts/dataset.sh
. "$here/dataset.sh"
# shellcheck source=workloads/olmo/scripts/prepare-blob.sh
. "$here/prepare-blob.sh"
export PARALLEL=${PARALLEL:-8} BLOCK_BYTES=${BLOCK_BYTES:-67108864}
HEARTBEAT_S=${HEARTBEAT_S:-60}
scratch=$STAGING/manifest

cannot_prepare() {
  hopeless "The data cannot be prepared: $*"
}

# The training holds its nodes as long as it sees this blob change. Runs in the background; refused, it ends like the copying.
say_alive() {
  scratch=$STAGING/alive
  local path
  path=$(alive_path)
  while true; do
    date >"$scratch.text"
    put "$scratch.text" "$path" || true # said already; the next one may succeed
    sleep "$HEARTBEAT_S"
  done
}

[[ -r $CONFIG ]] || cannot_prepare "the image has no training config $CONFIG"
listed=$(dataset_urls) || cannot_prepare "$CONFIG names data that cannot be copied, see above"
[[ -n $listed ]] || cannot_prepare "$CONFIG names no data file of olmo-data.org"
mapfile -t urls <<<"$listed"
say_alive &
echo "Copying ${#urls[@]} files that $CONFIG names, $PARALLEL at a time."

code=0
printf '%s\n' "${urls[@]}" | xargs -P "$PARALLEL" -n 1 bash "$here/prepare-file.sh" || code=$?
((code != 124)) || cannot_prepare "the upload secret does not open the container, see above"
((code == 0)) || { echo "Some files are not complete, see above; another try goes on from here." && exit 1; }

for url in "${urls[@]}"; do
  path=$(path_of "$url")
  cat "$STAGING/done/${path//\//,}"
done >"$scratch.list"
put "$scratch.list" "$(manifest_path)"
awk '{ bytes += $1 } END { printf "Prepared: %d files, %.0f bytes.\n", NR, bytes }' "$scratch.list"
