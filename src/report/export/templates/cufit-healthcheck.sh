#!/bin/bash
@note slurm_health.made
@note slurm_health.conf
@note slurm_health.codes
@note slurm_health.undrain

@note slurm_health.path
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C
@note slurm_health.settings
limit=20
resume=yes
node=${SLURMD_NODENAME:-$(hostname -s)}

record=$(timeout -k 1 5 scontrol -o show node "$node" 2>/dev/null)
@note slurm_health.fields
field() { printf '%s\n' "${record%%[[:space:]]Reason=*}" | sed -n "s/.*[[:space:]]$1=\\([^[:space:]]*\\).*/\\1/p"; }
reason=
case $record in *[[:space:]]Reason=*) reason=${record#*[[:space:]]Reason=} ;; esac
state=$(field State)

@note slurm_health.gres
gres=$(field Gres | sed 's/([^)]*)//g')
expect=0
for part in ${gres//,/ }; do
  case $part in
    gpu:*[0-9]g.[0-9]*) expect=; break ;;
    gpu|gpu:*)
      count=${part##*:}
      case $count in '' | *[!0-9]*) count=1 ;; esac
      expect=$((expect + count)) ;;
  esac
done
if [ -z "$record" ]; then expect=; fi
if [ "$expect" = 0 ]; then exit 0; fi

out=$(timeout -k 2 "$limit" cufit doctor --fast --lang en ${expect:+--expect-gpus "$expect"} 2>&1)
code=$?
line=$(printf '%s' "${out%%$'\n'*}" | tr -cd '[:print:]' | cut -c1-150)

drained=no
case $state in *DRAIN*) drained=yes ;; esac
case $reason in cufit:*) own=yes ;; *) own=no ;; esac

case $code:$line in
  0:usable*)
    if [ "$drained$own$resume" = yesyesyes ]; then
      scontrol update NodeName="$node" State=RESUME
    fi ;;
  1:"not usable"*)
    if [ "$drained" = no ]; then
      scontrol update NodeName="$node" State=DRAIN Reason="cufit: ${line#not usable }"
    fi ;;
  *) logger -t cufit-healthcheck -- "$node: could not tell ($code): $line" 2>/dev/null || true ;;
esac
exit 0
