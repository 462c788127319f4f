#!/usr/bin/env bash
# One node of the training: waits until its data is there, points the config at it, and runs OLMo under torchrun.
# Reads: NODES, GPUS_PER_NODE, JOB_COMPLETION_INDEX (this node's rank), MASTER (host:port of the first node), NAMESPACE,
# RUN_NAME, MICRO_BATCH, STOP_AT (may be empty), PREPARED (1 where a job copies the data), DATA_TIMEOUT_S, DATA_SILENCE_S,
# MEETING_TIMEOUT_S, DATA, CHECKPOINTS, SCRATCH (folders), CHECK_ONLY (1 to end once the config is checked), what dataset.sh and
# throughput.sh read, and NCCL's own variables.
# Exit code: 64 for what another try would not mend, else torchrun's.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=workloads/olmo/scripts/dataset.sh
. "$here/dataset.sh"
# shellcheck source=workloads/_scripts/infiniband.sh
. "$here/infiniband.sh"

cannot_start() {
  hopeless "OLMo cannot start: $*"
}

# The copying may have failed for good, or never begin: then it says nothing, and the nodes are not held for it.
wait_for_manifest() {
  local said=0 heard=0 alive written='' last=''
  alive=$DATA/$(alive_path)
  until [[ -r $DATA/$manifest ]]; do
    if ((SECONDS >= said)); then
      echo "Waiting for the data: kubectl logs -n $NAMESPACE job/olmo-data shows how far its copying is."
      said=$((SECONDS + 600))
    fi
    written=$(stat -c %Y "$alive" 2>/dev/null || true)
    [[ $written == "$last" ]] || heard=$SECONDS
    last=$written
    ((SECONDS - heard < DATA_SILENCE_S)) ||
      cannot_start "its data is not complete, and nothing has been at work on it for $DATA_SILENCE_S s. Why, kubectl logs -n" \
        "$NAMESPACE job/olmo-data says, or kubectl describe where it has not run. Once that is mended:" \
        "kubectl delete -n $NAMESPACE job olmo olmo-data && pulumi up --refresh"
    ((SECONDS < DATA_TIMEOUT_S)) || cannot_start "its data was not complete within $DATA_TIMEOUT_S s ($DATA/$manifest is missing)"
    sleep 5
  done
}

# Bytes and path of every file, as the manifest has them; without one, the files that the config names, of any size.
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
  ((wrong == 0)) || cannot_start "$wrong of $total data files are missing or cut short in $DATA, the first: $first"
  echo "All $total data files are there."
}

[[ -r $CONFIG ]] || cannot_start "the image has no training config $CONFIG"
dataset_urls >/dev/null || cannot_start "$CONFIG names data that cannot be copied, see above"
[[ -z ${CHECK_ONLY:-} ]] || exit 0
manifest=$(manifest_path)
[[ $PREPARED != 1 ]] || wait_for_manifest
check_files

# Caches and the config are of this node only; what must outlive it goes to the checkpoints.
work=$SCRATCH/$NAMESPACE-olmo
mkdir -p "$work/cache" "$work/tmp"
export XDG_CACHE_HOME=$work/cache HF_HOME=$work/cache/huggingface TRITON_CACHE_DIR=$work/cache/triton
export TORCHINDUCTOR_CACHE_DIR=$work/cache/inductor TMPDIR=$work/tmp
dataset -v want=config -v data="$DATA" >"$work/config.yaml"

infiniband=$(infiniband_devices)
[[ -z $infiniband ]] || export NCCL_IB_HCA=$infiniband

# A restart goes on from the latest checkpoint: OLMo needs leave to use a folder that is there already. Another number of nodes
# can read unsharded ones, which the regular ones are (save_num_checkpoints_to_keep: 0 of OLMo 2's configs), and sharded ones of
# the olmo_core kind, which the ephemeral ones are. No Weights & Biases: there is nobody to log in.
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

# Ranks are consecutive on a node. Nodes pull a large image at different speed: the first waits for the last.
torchrun --nnodes="$NODES" --nproc-per-node="$GPUS_PER_NODE" --node-rank="$JOB_COMPLETION_INDEX" \
  --rdzv-backend=static --rdzv-endpoint="$MASTER" --rdzv-id=olmo --rdzv-conf="timeout=$MEETING_TIMEOUT_S,read_timeout=$MEETING_TIMEOUT_S" \
  scripts/train.py "${training[@]}" 2>&1 | bash "$here/throughput.sh"
echo "Training ended; its checkpoints are under $NAMESPACE/$RUN_NAME in the checkpoint container."
