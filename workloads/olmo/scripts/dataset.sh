# shellcheck shell=bash
# Common functions of preparation and training: the data files, the blob that shows that all are complete, and the fatal error.
# Reads: CONFIG (path of a training config), MAX_FILES (0 for all), EVALUATE (0 or 1).

# Prints an error that a retry cannot fix, and ends with the exit code that fails the Job (workloads/_lib/indexed_job.py).
hopeless() {
  echo "$*"
  exit 64
}

dataset() {
  LC_ALL=C awk -v max="$MAX_FILES" -v evaluate="$EVALUATE" "$@" -f "$(dirname "${BASH_SOURCE[0]}")/dataset.awk" "$CONFIG"
}

# Prints each file's address, one per line. Fails if the config has other data, and prints these.
dataset_urls() {
  dataset -v want=urls
}

# Prints the path of a file in the container, which is the same as at its source.
path_of() {
  local rest=${1#*://}
  echo "${rest#*/}"
}

# Prints the path of the manifest, the blob that is written last and lists every file: bytes, tab, path. Its name depends on the
# selected files.
manifest_path() {
  local choice
  choice=$(dataset_urls | cksum)
  echo "prepared/$(basename "$CONFIG" .yaml)-${choice%% *}.tsv"
}

# Prints the path of the heartbeat, a blob that the preparation rewrites while it works.
alive_path() {
  local manifest
  manifest=$(manifest_path)
  echo "${manifest%.tsv}.alive"
}
