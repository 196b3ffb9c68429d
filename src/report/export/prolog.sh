#!/bin/bash
@note made
@note slurm.prolog

@note slurm.path
export PATH=/usr/local/bin:/usr/bin:/bin
CUFIT_LOCK=${CUFIT_LOCK:-/opt/cufit}
export CUFIT_LOCK

if [ -z "${SLURM_JOB_GPUS:-}" ] || [ ! -d "$CUFIT_LOCK/.cufit/envs" ]; then
  exit 0
fi
@note slurm.gpus
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$SLURM_JOB_GPUS"
line=$(cufit preflight 2>&1)
code=$?
@note slurm.code
if [ "$code" -eq 1 ]; then
  logger -t cufit-prolog -- "job ${SLURM_JOB_ID:-?}: $line" || true
  echo "$line"
  exit 1
fi
exit 0
