#!/usr/bin/env bash
# Runs on each node of the training: waits for the data, writes its paths into the config, and runs OLMo under torchrun.
# Reads: NODES, GPUS_PER_NODE, JOB_COMPLETION_INDEX (this node's rank), MASTER (host:port of the first node), NAMESPACE,
# RUN_NAME, MICRO_BATCH, STOP_AT (may be empty), PREPARED (1 if a job copies the data), DATA_TIMEOUT_S, DATA_SILENCE_S,
# MEETING_TIMEOUT_S, DATA, CHECKPOINTS, SCRATCH (folders), CHECK_ONLY (1 to only check the config), the variables of dataset.sh and
# throughput.sh, and NCCL's variables.
# Exit code: 64 for errors that a retry cannot fix, otherwise torchrun's.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=workloads/olmo/scripts/dataset.sh
. "$here/dataset.sh"
# shellcheck source=workloads/_scripts/infiniband.sh
. "$here/infiniband.sh"

cannot_start() {
  hopeless "OLMo cannot start: $*"
}

# Waits for the copying, but fails if it shows no progress, so that the nodes do not wait for a failed Job.
wait_for_manifest() {
  local next_report=0 last_change=0 alive written='' last=''
  alive=$DATA/$(alive_path)
  until [[ -r $DATA/$manifest ]]; do
    if ((SECONDS >= next_report)); then
      echo "Waiting for the data. To see the progress: kubectl logs -n $NAMESPACE job/olmo-data"
      next_report=$((SECONDS + 600))
    fi
    written=$(stat -c %Y "$alive" 2>/dev/null || true)
    [[ $written == "$last" ]] || last_change=$SECONDS
    last=$written
    ((SECONDS - last_change < DATA_SILENCE_S)) ||
      cannot_start "its data is not complete, and its copying made no progress for $DATA_SILENCE_S s. To see the cause:" \
        "kubectl logs -n $NAMESPACE job/olmo-data, or kubectl describe if it did not run. After you fix it:" \
        "kubectl delete -n $NAMESPACE job olmo olmo-data && pulumi up --refresh"
    ((SECONDS < DATA_TIMEOUT_S)) || cannot_start "its data was not complete within $DATA_TIMEOUT_S s ($DATA/$manifest is missing)"
    sleep 5
  done
}

# Prints bytes and path of every file in the manifest. Without a manifest, prints the files of the config, of any size.
expected_files() {
  if [[ -r $DATA/$manifest ]]; then
    cat "$DATA/$manifest"
  else
    dataset_urls | while read -r url; do printf 'any\t%s\n' "$(path_of "$url")"; done
  fi
}

check_files() {
  local bytes path have wrong=0 first='' total=0
  while IFS=$'\t' read -r bytes path; do
    total=$((total + 1))
    have=$(stat -c %s "$DATA/$path" 2>/dev/null || echo absent)
    [[ $have == "$bytes" || ($bytes == any && $have != absent) ]] && continue
    wrong=$((wrong + 1))
    first=${first:-$path ($have, expected $bytes bytes)}
  done < <(expected_files)
  ((wrong == 0)) || cannot_start "$wrong of $total data files in $DATA are missing or incomplete, the first: $first"
  echo "All $total data files are complete."
}

[[ -r $CONFIG ]] || cannot_start "the image has no training config $CONFIG"
dataset_urls >/dev/null || cannot_start "$CONFIG has data that cannot be copied, see above"
[[ -z ${CHECK_ONLY:-} ]] || exit 0
manifest=$(manifest_path)
[[ $PREPARED != 1 ]] || wait_for_manifest
check_files

# Caches and the config belong to this node. Only checkpoints must survive it.
work=$SCRATCH/$NAMESPACE-olmo
mkdir -p "$work/cache" "$work/tmp"
export XDG_CACHE_HOME=$work/cache HF_HOME=$work/cache/huggingface TRITON_CACHE_DIR=$work/cache/triton
export TORCHINDUCTOR_CACHE_DIR=$work/cache/inductor TMPDIR=$work/tmp
dataset -v want=config -v data="$DATA" >"$work/config.yaml"

infiniband=$(infiniband_devices)
[[ -z $infiniband ]] || export NCCL_IB_HCA=$infiniband

# A restart continues from the latest checkpoint, so OLMo must accept an existing folder. Another number of nodes can read regular
# checkpoints, which are unsharded (save_num_checkpoints_to_keep: 0 in OLMo 2's configs), and ephemeral ones, which are sharded by
# olmo_core. Weights & Biases is off, because it needs a login.
training=(
  "$work/config.yaml"
  "--run_name=$RUN_NAME"
  "--save_folder=$CHECKPOINTS/$NAMESPACE/$RUN_NAME"
  --save_overwrite
  --try_load_latest_save
  --sharded_checkpointer=olmo_core
  --save_data_indices=false
  "--device_train_microbatch_size=$MICRO_BATCH"
  --wandb=null
)
[[ -z $STOP_AT ]] || training+=("--stop_at=$STOP_AT")

# Ranks are consecutive on a node. The first node waits for the last, because nodes pull a large image at different speeds.
torchrun --nnodes="$NODES" --nproc-per-node="$GPUS_PER_NODE" --node-rank="$JOB_COMPLETION_INDEX" \
  --rdzv-backend=static --rdzv-endpoint="$MASTER" --rdzv-id=olmo --rdzv-conf="timeout=$MEETING_TIMEOUT_S,read_timeout=$MEETING_TIMEOUT_S" \
  scripts/train.py "${training[@]}" 2>&1 | bash "$here/throughput.sh"
echo "Training ended; its checkpoints are under $NAMESPACE/$RUN_NAME in the checkpoint container."
