#!/bin/bash
@note slurm_prolog.made
@note slurm_prolog.prolog

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C
limit=20

@note slurm_prolog.gpus
case ${SLURM_JOB_GPUS:-} in
  '' | *[!0-9,]*) exit 0 ;;
esac
nodes=/dev/nvidia${SLURM_JOB_GPUS//,/,\/dev\/nvidia}
out=$(timeout -k 2 "$limit" cufit doctor --fast --lang en --gpus "$nodes" 2>&1)
code=$?
line=$(printf '%s' "${out%%$'\n'*}" | tr -cd '[:print:]' | cut -c1-150)
case $code:$line in 1:"not usable"*) bad=yes ;; *) bad=no ;; esac
if [ "$bad" = yes ]; then
  logger -t cufit-prolog -- "job ${SLURM_JOB_ID:-?}: $line" 2>/dev/null || true
  echo "$line"
  exit 1
fi
exit 0
