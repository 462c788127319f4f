#!/usr/bin/env bash
# Runs one rank of the training; mpirun starts one for each GPU.
# Usage: train.sh HEAD, where HEAD is the host of rank 0, to which all ranks connect.
# Reads the common command line from the file `arguments` beside it, one word per line, and the rank from Open MPI. The GPU has the
# rank's number on its node: model-parallel groups are consecutive ranks.
set -euo pipefail

head=$1
here=$(dirname "${BASH_SOURCE[0]}")
mapfile -t arguments <"$here/arguments"

exec metaseq-train "${arguments[@]}" \
  --distributed-world-size "$OMPI_COMM_WORLD_SIZE" \
  --distributed-rank "$OMPI_COMM_WORLD_RANK" \
  --device-id "$OMPI_COMM_WORLD_LOCAL_RANK" \
  --distributed-init-method "barrierlesstcpr://$head:29400"
