#!/bin/bash
@note slurm_prolog.made
@note slurm_prolog.epilog

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
  logger -t cufit-epilog -- "job ${SLURM_JOB_ID:-?}: $line" 2>/dev/null || true
  echo "$line"
  node=${SLURMD_NODENAME:-$(hostname -s)}
  record=$(timeout -k 1 5 scontrol -o show node "$node" 2>/dev/null)
  case ${record%%[[:space:]]Reason=*} in
    *State=*DRAIN*) ;;
    *) timeout -k 1 5 scontrol update NodeName="$node" State=DRAIN \
      Reason="cufit: ${line#not usable }" ;;
  esac
  exit 0
fi
exit 0
