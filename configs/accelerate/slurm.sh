#!/usr/bin/env bash
# Starts `accelerate launch` once on every machine of a Slurm job; in a pipeline:
#   launch: bash configs/accelerate/slurm.sh configs/accelerate/mi300x_8x8_fsdp2.yaml
# The job has as many machines as the configuration says, and all of them see the folder of the run at the same path.
set -euo pipefail
if [[ $# -lt 2 || -z ${SLURM_JOB_NODELIST:-} ]]; then
  echo "$0: give an accelerate configuration and a command, inside a Slurm job (salloc or sbatch)." >&2
  exit 2
fi
machines=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
# The number of each machine is known on that machine alone.
exec srun --ntasks-per-node 1 --kill-on-bad-exit=1 bash -c \
  'exec accelerate launch --config_file "$1" --main_process_ip "$0" --machine_rank "$SLURM_NODEID" "${@:2}"' \
  "${machines%%$'\n'*}" "$@"
