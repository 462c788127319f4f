# shellcheck shell=bash
# Prints rates of a training. The scripts that add them to its log source it.
# Reads: GPUS; FLOPS_PER_TOKEN of the model; PEAK_FLOPS of all GPUs, dense.

# show_rate WHAT RATE SHARES: prints the rate of one of SHARES equal parts as tokens/s of the whole training, and as MFU (model
# FLOPs utilisation: the model's arithmetic divided by the GPUs' peak).
show_rate() {
  awk -v what="$1" -v rate="$2" -v shares="$3" -v gpus="$GPUS" -v flops="$FLOPS_PER_TOKEN" -v peak="$PEAK_FLOPS" 'BEGIN {
    all = rate * shares
    printf "%s: %.0f tokens/s, %.0f tokens/s/GPU, MFU %.1f %%\n", what, all, all / gpus, 100 * all * flops / peak
  }'
}
