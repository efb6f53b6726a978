#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the scripts of deploy/slurm on a Slurm of two machines (MM-7):
#
#   tests/mpi/test_slurm.sh [openmpi=PROGRAM] [mpich=PROGRAM]
#
# Each PROGRAM is a training, whose ranks print "passed". The machines are network namespaces with host names and shared
# memory of their own. Everything runs in namespaces that end with the test, processes too, so nothing outside can reach
# this Slurm, which trusts everyone. Exits with 77, skipped, without Slurm or the right to make namespaces.
set -uo pipefail

scripts=$(realpath "$(dirname "$0")/../../deploy/slurm")

fail() {
  echo "tests/mpi/test_slurm.sh: $1" >&2
  cat "$work"/*.out "$work"/*.log >&2
  exit 1
}

if [ "${1:-}" != --inside ]; then
  for command in slurmctld slurmd sbatch srun ip unshare nsenter; do
    PATH=$PATH:/usr/sbin command -v $command >/dev/null && continue
    echo "tests/mpi/test_slurm.sh: skipped: $command is missing (the packages slurmctld, slurmd, iproute2)"
    exit 77
  done
  if ! mountpoint -q /sys/fs/cgroup; then
    echo "tests/mpi/test_slurm.sh: skipped: there are no cgroups, without which slurmd does not start"
    exit 77
  fi
  work=$(mktemp -d "${TMPDIR:-/tmp}/rondo-slurm.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  inside=(unshare --net --uts --ipc --mount --pid --fork --kill-child --mount-proc)
  if ! "${inside[@]}" true 2>"$work/error"; then
    echo "tests/mpi/test_slurm.sh: skipped: no right to make namespaces: $(cat "$work/error")"
    exit 77
  fi
  "${inside[@]}" "$0" --inside "$work" "$@"
  exit
fi
work=$2
shift 2
export work PATH=$PATH:/usr/sbin SLURM_CONF=$work/rondo1/slurm.conf

# The interfaces of this network namespace are in a new /sys, which has no cgroups.
renew_sys() {
  mkdir -p "$work/cgroup" && mount --rbind /sys/fs/cgroup "$work/cgroup" && mount -t sysfs none /sys &&
    mount --rbind "$work/cgroup" /sys/fs/cgroup && umount --lazy "$work/cgroup"
}
export -f renew_sys

# Machine rondo1 is this namespace, rondo2 another one.
make_machines() {
  printf '127.0.0.1 localhost\n10.78.0.1 rondo1\n10.78.0.2 rondo2\n' >"$work/hosts"
  mkdir -p "$work/state" "$work"/rondo{1,2}/{spool,tmp} /run/netns &&
    mount --bind "$work/hosts" /etc/hosts && mount -t tmpfs none /run/netns && mount -t tmpfs none /dev/shm &&
    renew_sys && hostname rondo1 && ip link set lo up && ip netns add rondo2 &&
    ip link add rondo type veth peer name rondo netns rondo2 &&
    ip address add 10.78.0.1/24 dev rondo && ip link set rondo up &&
    ip -n rondo2 address add 10.78.0.2/24 dev rondo && ip -n rondo2 link set rondo up && ip -n rondo2 link set lo up
}

# write_configuration MACHINE
write_configuration() {
  local folder=$work/$1
  printf 'Name=gpu File=/dev/%s\n' null zero >"$folder/gres.conf" # any two files are two GPUs
  echo "PMIxCliTmpDirBase=$folder/tmp" >"$folder/mpi.conf"
  cat >"$folder/slurm.conf" <<END
ClusterName=rondo
SlurmctldHost=rondo1
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SlurmdParameters=config_overrides
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/%n/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
NodeName=rondo[1-2] CPUs=2 Gres=gpu:2
PartitionName=all Nodes=ALL Default=YES
END
}

start_slurm() {
  slurmctld -D >"$work/slurmctld.out" 2>&1 &
  slurmd -D >"$work/slurmd1.out" 2>&1 &
  SLURM_CONF=$work/rondo2/slurm.conf nsenter --net=/run/netns/rondo2 unshare --uts --ipc --mount bash -c \
    'renew_sys && hostname rondo2 && mount -t tmpfs none /dev/shm && exec slurmd -D' >"$work/slurmd2.out" 2>&1 &
  for ((i = 0; i < 100; i++)); do
    [ "$(sinfo --noheader --format=%T%D 2>/dev/null)" = idle2 ] && return
    sleep 0.1
  done
  fail "Slurm does not start: $(sinfo 2>&1)"
}

# submit LINES PATTERN OPTION... SCRIPT COMMAND...: the job ends with 0, and as many lines of its output match. With
# `ends`, it ends in this state.
submit() {
  local lines=$1 pattern=$2 output=$work/job state job ends=${ends:-COMPLETED}
  shift 2
  echo "sbatch $*"
  job=$(sbatch --parsable --output="$output" --cpus-per-task=1 "$@" </dev/null) || fail "sbatch $* is refused"
  for ((i = 0; i < 600; i++)); do
    state=$(scontrol --oneliner show job "$job" | grep -o ' JobState=[A-Z]*')
    case $state in
      '' | *=PENDING | *=RUNNING | *=COMPLETING) sleep 0.2 ;; # '': the controller did not answer
      *) break ;;
    esac
  done
  [[ $state == *=$ends ]] || fail "sbatch $*: $state: $(cat "$output")"
  [ "$(grep -Ec "$pattern" "$output")" -eq "$lines" ] || fail "sbatch $*: not $lines times $pattern: $(cat "$output")"
}

make_machines || fail "the machines cannot be made"
write_configuration rondo1
write_configuration rondo2
start_slurm

# The MPIs find only the interfaces of the namespaces. What they say of root and of processors is as in tests/mpi/run.
export OMPI_MCA_btl=tcp,self OMPI_MCA_pml=ob1 OMPI_MCA_btl_tcp_if_include=rondo OMPI_MCA_mpi_yield_when_idle=1
export FI_PROVIDER=tcp FI_TCP_IFACE=rondo UCX_NET_DEVICES=rondo UCX_TLS=tcp,self RONDO_TEST_WITHOUT_FINALIZE=1
for pair in "$@"; do
  case $pair in
    openmpi=*) export SLURM_MPI_TYPE=pmix ;;
    mpich=*) export SLURM_MPI_TYPE=pmi2 ;;
    *) fail "unknown argument '$pair'" ;;
  esac
  submit 2 '^rank [01] passed' "$scripts/cpu.sbatch" "${pair#*=}"
  submit 2 '^rank [01] passed' --nodes=2 --ntasks-per-node=1 "$scripts/cpu.sbatch" "${pair#*=}"
done

# What rondo_communicator_from_environment reads, and the tool. A real group needs GPUs.
unset SLURM_MPI_TYPE
# shellcheck disable=SC2016  # the variables are those of the rank
say='echo "rank $SLURM_PROCID of $SLURM_NTASKS, $SLURM_LOCALID on its machine: $SLURM_STEP_NODELIST"'
submit 2 '^rank ([01]) of 2, \1 on its machine: rondo1$' "$scripts/gpu.sbatch" sh -c "$say"
submit 4 '^rank [0-3] of 4, [01] on its machine: rondo\[1-2\]$' --nodes=2 "$scripts/gpu.sbatch" sh -c "$say"
# shellcheck disable=SC2016
fails='[ "$SLURM_PROCID" = 1 ] || exec sleep 600; echo "rank 1 fails"; exit 1'
ends=FAILED submit 1 '^rank 1 fails' --nodes=2 "$scripts/gpu.sbatch" sh -c "$fails"
echo "tests/mpi/test_slurm.sh: passed"
