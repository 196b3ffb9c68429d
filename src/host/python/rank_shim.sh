#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands on the PATH of a program that `cufit fit` traces, as srun, sbatch, scontrol, mpirun and mpiexec. Reads their options, asks
# no cluster and starts nothing elsewhere: it becomes one rank of the program (python/cufit_tracer/program/launchers.py).
set -f
name=${0##*/}
tasks='' nodes='' per_node='' gpus='' folder='' wrapped='' words=0

whole() { case $1 in '' | 0* | *[!0-9]* | ???????*) false ;; *) [ "$1" -gt 0 ] ;; esac; }

# NAME=VALUE, where the name is one.
variable() { case ${1%%=*} in '' | *[!A-Za-z0-9_]* | [0-9]*) ;; *) case $1 in *=*) export "$1" ;; esac ;; esac; }

# One option of Slurm and its value.
slurm_option() {
  case $1 in
    -n | --ntasks) tasks=$2 ;;
    -N | --nodes) nodes=${2%%-*} ;;
    --ntasks-per-node | --tasks-per-node) per_node=$2 ;;
    --gpus-per-task) gpus=${2##*:} ;;
    -D | --chdir) folder=$2 ;;
    --wrap) wrapped=$2 ;;
    --export)
      IFS=,
      for pair in $2; do variable "$pair"; done
      unset IFS
      ;;
  esac
}

# Reads options up to the program's name; `words`: how many they were.
slurm_options() {
  words=$#
  while [ $# -gt 0 ]; do
    case $1 in
      --) shift && break ;;
      --*=*) slurm_option "${1%%=*}" "${1#*=}" ;;
      -W) [ "$name" = sbatch ] || { [ $# -gt 1 ] && shift; } ;;
      --nice | --x11 | --bcast | --quit-on-interrupt | --label | --unbuffered | --exclusive | --overcommit | --oversubscribe | --share | --quiet | --verbose | --kill-on-bad-exit | \
        --no-kill | --hold | --immediate | --contiguous | --exact | --overlap | --pty | --preserve-env | --multi-prog | --reboot | \
        --spread-job | --use-min-nodes | --disable-status | --no-allocate | --requeue | --no-requeue | --parsable | --wait | \
        --test-only | --ignore-pbs | --propagate | --get-user-env | --no-container-* | --container-writable | \
        --container-readonly | --container-mount-home | --container-remap-root | -[EHIKOQRXhklsuvz]) ;;
      --* | -?) slurm_option "$1" "$2" && [ $# -gt 1 ] && shift ;;
      -[nND]*) slurm_option "${1%"${1#??}"}" "${1#??}" ;;
      -*) ;;
      *) break ;;
    esac
    shift
  done
  words=$((words - $#))
}

mpi_options() {
  words=$#
  while [ $# -gt 0 ]; do
    case $1 in
      -np | -n | -c | --np | --n) tasks=$2 && shift ;;
      -N | -npernode | --npernode | -ppn | --ppn | -perhost) per_node=$2 && shift ;;
      -wdir | --wdir | -wd) folder=$2 && shift ;;
      -x | --x) variable "$2" && shift ;;
      -env | -genv | --genv) variable "$2=$3" && shift 2 ;;
      -mca | --mca | -gmca | --gmca | --pmixmca | --prtemca) shift 2 ;;
      -H | -host | --host | -hosts | --hosts | -hostfile | --hostfile | -machinefile | --machinefile | -f | --map-by | -map-by | \
        --bind-to | -bind-to | --rank-by | -rank-by | --prefix | --output-filename | --output | --timeout | -am | --tune | \
        -genvlist | -envlist | -launcher | --launcher | -iface | --personality | --report-child-jobs-separately | --cpu-set | \
        --cpu-list | -rf | --rankfile | -cpus-per-rank | --cpus-per-rank | -cpus-per-proc | --cpus-per-proc | --rmaps-base-* | --mpi | --ofi-provider) shift ;;
      -*) ;;
      *) break ;;
    esac
    shift
  done
  words=$((words - $#))
}

batch_script() {
  while IFS= read -r line; do
    case $line in
      '#SBATCH '*) slurm_options ${line#\#SBATCH } ;;
      '#'* | '') ;;
      *) break ;;
    esac
  done <"$1"
}

# Ranks on each node, all ranks, and which of them this one is.
place() {
  spread=yes  # over nodes whose number is known
  whole "$nodes" || nodes=${SLURM_NNODES:-}
  whole "$nodes" || spread=no
  whole "$nodes" || nodes=1
  whole "$per_node" || per_node=${SLURM_NTASKS_PER_NODE:-}
  if ! whole "$tasks"; then
    if whole "$per_node"; then tasks=$((nodes * per_node)); else tasks=${SLURM_NTASKS:-$nodes}; fi
  fi
  whole "$tasks" || tasks=1
  if [ "$spread" = no ] && ! whole "$per_node" && [ "$tasks" -gt 8 ]; then per_node=8; fi
  whole "$per_node" || per_node=$(((tasks + nodes - 1) / nodes))
  if whole "${CUFIT_FIT_WORLD:-}"; then
    tasks=$CUFIT_FIT_WORLD
    [ "$per_node" -gt 1 ] || per_node=8
  fi
  [ "$per_node" -le "$tasks" ] || per_node=$tasks
  while [ $((tasks % per_node)) -ne 0 ]; do per_node=$((per_node - 1)); done
  nodes=$((tasks / per_node))
  rank=${CUFIT_FIT_RANK:-0}
  [ "$rank" != last ] || rank=$((tasks - 1))
  { whole "$rank" && [ "$rank" -lt "$tasks" ]; } || rank=0
}

slurm_variables() {
  export SLURM_JOB_ID="${SLURM_JOB_ID:-1}" SLURM_JOBID="${SLURM_JOB_ID:-1}" SLURM_NTASKS="$tasks" SLURM_NPROCS="$tasks" \
    SLURM_NNODES="$nodes" SLURM_JOB_NUM_NODES="$nodes" SLURM_NTASKS_PER_NODE="$per_node" \
    SLURM_TASKS_PER_NODE="$per_node(x$nodes)" SLURM_NODELIST=localhost SLURM_JOB_NODELIST=localhost SLURM_GPUS_ON_NODE="$per_node"
}

if [ "$name" = scontrol ]; then
  [ "$1 $2" != 'show hostnames' ] || echo localhost
  exit 0
fi
case $name in
  srun | sbatch) slurm_options "$@" ;;
  *) mpi_options "$@" ;;
esac
shift "$words"
if [ "$name" = sbatch ]; then
  [ -n "$wrapped" ] && set -- /bin/sh -c "$wrapped"
  if [ -z "$wrapped" ]; then
    [ -r "${1:-}" ] || { echo "sbatch: ${1:-standard input}: no script that can be read" >&2 && exit 1; }
    case $1 in /*) ;; *) script=$PWD/$1 && shift && set -- "$script" "$@" ;; esac
    asked="$tasks,$nodes,$per_node" from=$folder
    batch_script "$1"
    folder=${from:-$folder}
    IFS=, read -r given_tasks given_nodes given_per_node <<EOF
$asked
EOF
    tasks=${given_tasks:-$tasks} nodes=${given_nodes:-$nodes} per_node=${given_per_node:-$per_node}
    set -- bash "$@"
  fi
  [ -z "$folder" ] || cd "$folder" || exit 1
  place
  slurm_variables
  export SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0
  exec "$@"
fi
[ $# -gt 0 ] || { echo "$name: no program" >&2 && exit 1; }
[ -z "$folder" ] || cd "$folder" || exit 1
place
export CUFIT_FIT_PLACED="$per_node" CUFIT_FIT_DEVICES=''
! whole "$gpus" || export CUFIT_FIT_DEVICES="$gpus"
local=$((rank % per_node)) node=$((rank / per_node))
if [ "$name" = srun ]; then
  slurm_variables
  export SLURM_PROCID="$rank" SLURM_LOCALID="$local" SLURM_NODEID="$node" SLURM_STEP_NUM_TASKS="$tasks" SLURM_STEP_ID=0 \
    SLURM_STEPID=0 SLURM_STEP_NODELIST=localhost SLURMD_NODENAME=localhost SLURM_LAUNCH_NODE_IPADDR=127.0.0.1
else
  export OMPI_COMM_WORLD_SIZE="$tasks" OMPI_COMM_WORLD_RANK="$rank" OMPI_COMM_WORLD_LOCAL_RANK="$local" \
    OMPI_COMM_WORLD_LOCAL_SIZE="$per_node" OMPI_COMM_WORLD_NODE_RANK="$local" PMI_RANK="$rank" PMI_SIZE="$tasks" \
    MPI_LOCALRANKID="$local" MPI_LOCALNRANKS="$per_node"
fi
exec "$@"
