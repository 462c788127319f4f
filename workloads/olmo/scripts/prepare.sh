#!/usr/bin/env bash
# Copies the data files of a training config into the data container. When all of them are complete, it writes the manifest that
# the training waits for. A second run only copies missing files.
# Reads: the variables of dataset.sh and prepare-blob.sh; PARALLEL, BLOCK_BYTES, HEARTBEAT_S (defaults below).
# Exit code: 0 complete; 64 for errors that a retry cannot fix; otherwise 1.
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

# Rewrites the heartbeat, in the background: the training waits as long as it changes. A rejected SAS ends it, like the copying.
send_heartbeats() {
  scratch=$STAGING/alive
  local path
  path=$(alive_path)
  while true; do
    date >"$scratch.text"
    put "$scratch.text" "$path" || true # the next one may succeed
    sleep "$HEARTBEAT_S"
  done
}

[[ -r $CONFIG ]] || cannot_prepare "the image has no training config $CONFIG"
listed=$(dataset_urls) || cannot_prepare "$CONFIG has data that cannot be copied, see above"
[[ -n $listed ]] || cannot_prepare "$CONFIG has no data file of olmo-data.org"
mapfile -t urls <<<"$listed"
send_heartbeats &
echo "Copying ${#urls[@]} files of $CONFIG, $PARALLEL in parallel."

code=0
printf '%s\n' "${urls[@]}" | xargs -P "$PARALLEL" -n 1 bash "$here/prepare-file.sh" || code=$?
((code != 124)) || cannot_prepare "the upload secret does not open the container, see above"
((code == 0)) || { echo "Some files are not complete, see above; a retry copies the rest." && exit 1; }

for url in "${urls[@]}"; do
  path=$(path_of "$url")
  cat "$STAGING/done/${path//\//,}"
done >"$scratch.list"
put "$scratch.list" "$(manifest_path)"
awk '{ bytes += $1 } END { printf "Prepared: %d files, %.0f bytes.\n", NR, bytes }' "$scratch.list"
