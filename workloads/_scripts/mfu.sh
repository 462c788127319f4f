# shellcheck shell=bash
# Sourced by what passes a training's log on.
# Reads: GPUS; FLOPS_PER_TOKEN of the model; PEAK_FLOPS of all GPUs, dense.

# show_rate WHAT RATE SHARES: prints a rate that one of SHARES equal parts of the training has, as tokens/s of all, and as MFU
# (model FLOPs utilisation, the share of the GPUs' peak that the model's arithmetic makes up).
show_rate() {
  awk -v what="$1" -v rate="$2" -v shares="$3" -v gpus="$GPUS" -v flops="$FLOPS_PER_TOKEN" -v peak="$PEAK_FLOPS" 'BEGIN {
    all = rate * shares
    printf "%s: %.0f tokens/s, %.0f tokens/s/GPU, MFU %.1f %%\n", what, all, all / gpus, 100 * all * flops / peak
  }'
}
