#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo train --data-parallel, as far as it needs no MPI (MM-5): it needs a launcher, and several ranks need MPI or GPUs.
# A rank says which one it is; one alone trains as without the option. tests/mpi/test_train.sh has the rest.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
small=(--steps 20 --batch 16 --context 4 --embedding 8 --hidden 32)
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE RANK WORLD_SIZE SLURM_PROCID SLURM_NTASKS
fails 2 '--data-parallel needs a launcher that starts the ranks: mpirun -n N rondo train' train text --data-parallel
fails 2 '--mpi needs --data-parallel' train text --mpi text
fails 2 '--timeout takes a number from 1 to ' train text --timeout 0
succeeds train text "${small[@]}" --json
cp out alone
RANK=0 WORLD_SIZE=1 succeeds train text "${small[@]}" --data-parallel --json
[ "$(jq .loss_history out)" = "$(jq .loss_history alone)" ] || die "one rank trains otherwise than none"
json_holds '.ranks == null'
RANK=1 WORLD_SIZE=2 fails 1 'rank 1: torchrun starts no ranks of MPI, .* use mpirun, or --device cuda' \
  train text --data-parallel
RANK=2 WORLD_SIZE=2 fails 2 'needs a launcher' train text --data-parallel
RANK=x WORLD_SIZE=2 fails 2 'needs a launcher' train text --data-parallel
PMI_RANK=0 PMI_SIZE=2 fails 1 "rank 0: no component rondo-mpi for MPICH's mpirun: nowhere/x.so: .*name it with --mpi" \
  train text --data-parallel --mpi nowhere/x.so
SLURM_PROCID=1 SLURM_NTASKS=2 fails 1 "rank 1: no component rondo-mpi for srun: nowhere/x.so" \
  train text --data-parallel --mpi=nowhere/x.so
SLURM_PROCID=1 SLURM_NTASKS=2 fails 1 "rank 1: no component rondo-mpi for srun: nowhere/x.so" \
  train text --data-p --mp nowhere/x.so
