# shellcheck shell=bash
# What the preparation and the training must agree on: which files, which blob says that all of them are there, and how to
# give up. Reads: CONFIG (path of a training config), MAX_FILES (0 for all), EVALUATE (0 or 1).

# Says why another try would not mend it, and ends with the exit code at which the Job fails for good (manifests.py).
hopeless() {
  echo "$*"
  exit 64
}

dataset() {
  LC_ALL=C awk -v max="$MAX_FILES" -v evaluate="$EVALUATE" "$@" -f "$(dirname "${BASH_SOURCE[0]}")/dataset.awk" "$CONFIG"
}

# Each file's address, one per line. Fails for a config that names other data, having printed which.
dataset_urls() {
  dataset -v want=urls
}

# Where a file lies in the container: its path at the source.
path_of() {
  local rest=${1#*://}
  echo "${rest#*/}"
}

# The blob that is written last and lists every file: bytes, tab, path. Another choice of files has another name.
manifest_path() {
  local choice
  choice=$(dataset_urls | cksum)
  echo "prepared/$(basename "$CONFIG" .yaml)-${choice%% *}.tsv"
}

# The blob beside it that the preparation writes again and again while it is at work.
alive_path() {
  local manifest
  manifest=$(manifest_path)
  echo "${manifest%.tsv}.alive"
}
