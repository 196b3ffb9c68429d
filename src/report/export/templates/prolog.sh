#!/bin/bash
@note made
@note slurm.prolog

@note slurm.path
export PATH=/usr/local/bin:/usr/bin:/bin

if [ -z "${SLURM_JOB_GPUS:-}" ]; then
  exit 0
fi
@note slurm.gpus
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$SLURM_JOB_GPUS"
line=$(cufit preflight --machine 2>&1)
code=$?
@note slurm.code
if [ "$code" -eq 1 ]; then
  logger -t cufit-prolog -- "job ${SLURM_JOB_ID:-?}: $line" || true
  echo "$line"
  exit 1
fi
exit 0
