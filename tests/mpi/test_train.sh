#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo train --data-parallel (MM-5, MM-6): test_train.sh TOOL MPI CASE, where MPI is openmpi or mpich.
#
# validates: ranks have the validation losses of one process, and save the same model; so do sharded ones.
# trains: ranks have the losses of one process to 1e-4, and checkpoints that resume with another number of ranks.
# speaks: one rank reports for all of them; an interrupt of one stops all after the same step.
# refuses: what is wrong on any rank is said once, with the rank, and ends all of them.
# loses: a rank that is killed or stopped is named within the timeout, and the last checkpoint resumes.
source "$(dirname "${BASH_SOURCE[0]}")/../cli/support.sh" "$1"
mpi=$2
make_text >text
forty=(text --batch 8 --context 4 --embedding 8 --hidden 32 --steps 40)

# on RANKS ARGUMENT...: `out` and `err` get what the ranks print, and the files pid.RANK their numbers.
on() {
  local ranks=$1
  shift
  timeout 100 "$here/../mpi/run" "${options[@]}" "$mpi" "$ranks" bash -c '
    rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} status=0
    echo started >"status.$rank"
    (echo "$BASHPID" >"pid.$rank"; exec "$@") || status=$?
    echo "$status" >"status.$rank"
    exit "$status"' rank "$tool" train --data-parallel --timeout 30 "$@" >out 2>err
}
options=()

# The losses of the file are those of `one`, of all steps.
same_losses() {
  jq -e -s '.[0].losses as $one | .[1] | .losses as $own | ($own | length) == 40 and
    all(range($own | length); ($own[.] - $one[.] | fabs) < 1e-4)' one "$1" >/dev/null ||
    die "other losses than one process: $(jq -c .losses one "$1")"
}

# kept ARGUMENT...: the bytes that the optimizer keeps on rank 0 of 2.
kept() {
  on 2 "${forty[@]}" --steps 2 --explain --json "$@" || die "explaining $*: $(cat err)"
  jq '[.. | .optimizer_bytes? // empty][0]' out
}

trains() {
  succeeds train "${forty[@]}" --json
  cp out one
  for ranks in 2 4; do
    on $ranks "${forty[@]}" --json --checkpoint whole || die "$ranks ranks: $(cat err)"
    json_holds .identical ".ranks | length == $ranks" '.engine == "MPI"' '.tokens_per_second > 0' '.buckets >= 1'
    same_losses out
  done
  cp out four
  on 4 "${forty[@]}" --checkpoint part --stop-after 20 || die "a part: $(cat err)"
  succeeds train "${forty[@]}" --resume part --json
  same_losses out
  on 2 "${forty[@]}" --resume part --json || die "resuming on 2: $(cat err)"
  same_losses out
  on 4 "${forty[@]}" --resume part --json --checkpoint part || die "resuming on 4: $(cat err)"
  [ "$(jq .loss_history out)" = "$(jq .loss_history four)" ] || die "other bits than training that was not stopped"
  cmp whole part || die "another checkpoint than of training that was not stopped"
  on 4 "${forty[@]}" --json --shard-states --checkpoint part --stop-after 20 || die "sharded: $(cat err)"
  on 2 "${forty[@]}" --json --resume part || die "resuming a sharded one on 2: $(cat err)"
  same_losses out
  on 2 "${forty[@]}" --json --shard-states --resume part || die "resuming a sharded one on 2, sharded: $(cat err)"
  same_losses out
  on 2 "${forty[@]}" --shard-states --checkpoint part --stop-after 20 || die "sharded on 2: $(cat err)"
  on 4 "${forty[@]}" --json --shard-states --resume part || die "resuming a sharded one of 2 on 4: $(cat err)"
  same_losses out
  succeeds train "${forty[@]}" --resume part --json
  same_losses out
  on 2 "${forty[@]}" --steps 4 --shard-states --save sharded.model || die "saving a sharded one: $(cat err)"
  on 2 "${forty[@]}" --steps 4 --save whole.model || die "saving: $(cat err)"
  cmp sharded.model whole.model || die "sharded states gave another model"
  (($(kept --shard-states) < $(kept) * 6 / 10)) || die "sharded states take as much memory"
  on 1 "${forty[@]}" --json || die "one rank: $(cat err)"
  [ "$(jq .loss_history out)" = "$(jq .loss_history one)" ] || die "one rank is not as without --data-parallel"
}

validates() {
  local validated=("${forty[@]}" --validation 50 --validate-every 5 --patience 6 --json) sharding
  succeeds train "${validated[@]}" --save one.model
  cp out one
  for sharding in '' --shard-states; do
    # shellcheck disable=SC2086 # no word if empty
    on 2 "${validated[@]}" $sharding --save own.model --checkpoint whole || die "2 ranks $sharding: $(cat err)"
    same_losses out
    jq -e -s '[.[].validation.losses] | .[0] as $one | .[1] as $own | ($one | length) == 8 and
      all(range(8); $one[.].step == $own[.].step and ($one[.].loss - $own[.].loss | fabs) < 1e-4)' one out >/dev/null ||
      die "other validation losses than one process: $(jq -c .validation one out)"
    [ "$(jq .saved out)" = '"own.model"' ] && [ "$(wc -c <own.model)" = "$(wc -c <one.model)" ] || die "no model"
    # shellcheck disable=SC2086
    on 2 "${validated[@]}" $sharding --checkpoint part --stop-after 33 || die "a part: $(cat err)"
    # shellcheck disable=SC2086
    on 2 "${validated[@]}" $sharding --checkpoint part --resume part --save part.model || die "resuming: $(cat err)"
    cmp whole part && cmp own.model part.model || die "two parts gave something else"
  done
}

speaks() {
  RONDO_TRACE=own.json on 2 "${forty[@]}" --save model --report page.html --explain --dump-graph graph ||
    die "$(cat err)"
  [ "$(grep -c "^program 'train' on" out)" = 1 ] || die "not one explanation: $(cat out)"
  [ "$(grep -c '^loss ' out)" = 1 ] || die "not one report: $(cat out)"
  grep -Eq "^ranks    2 of .*, with 4 of the batch each, on MPI: [0-9]+ tokens/s" out || die "no ranks: $(cat out)"
  grep -q '^rank 1 .* loss [0-9.]* in the last step' out || die "no loss of rank 1: $(cat out)"
  grep -q 'aria-label="Ranks"' page.html || die "the page has no ranks"
  jq -e . own.json own.json.1 graph >/dev/null && [ -s model ] || die "a file is missing"
  on 2 "${forty[@]}" --trace trace.json || die "$(cat err)"
  jq -e -s '[.[] | .[0].pid] | .[0] != .[1]' trace.json trace.json.1 >/dev/null || die "not the traces of both ranks"

  rm -f stopped
  on 2 "${forty[@]}" --steps 1000000 --compare 1 --checkpoint stopped --checkpoint-every 20 &
  local child=$! status=0
  until [ -e stopped ]; do kill -0 $child || die "training ended by itself: $(cat err)"; sleep 0.05; done
  until grep -Eq 'recorded: .* loss [0-9.]+ [(][0-9.]+ to [0-9.]+ on 2 ranks[)], [0-9]+ tokens/s, .* left$' err; do
    kill -0 $child || die "no progress: $(cat err)"
    sleep 0.1
  done
  kill -TERM "$(cat pid.1)"
  wait $child || status=$?
  [ $status = 143 ] || die "exit status $status after SIGTERM: $(cat err)"
  local step
  step=$(sed -nE 's/.*interrupted after step ([0-9]+) of 1000000; the checkpoint is stopped.*/\1/p' err)
  [ -n "$step" ] || die "not one word on the interrupt: $(cat err)"
  grep -q "^  mpirun -n 2 rondo train --resume stopped --data-parallel" err || die "not how to resume: $(cat err)"
  succeeds train "${forty[@]}" --steps $((step + 2)) --resume stopped --json
  json_holds ".steps_before == $step"
}

# refused STATUS PATTERN: the last command ended with it, and said so once.
refused() {
  [ "$status" -eq "$1" ] || die "exit status $status, not $1: $(cat err)"
  [ "$(grep -c '^rondo train: ' err)" = 1 ] || die "not one line of ours: $(cat err)"
  grep -Eq "^rondo train: $2" err || die "no '$2' in: $(cat err)"
}

refuses() {
  local status=0
  on 3 "${forty[@]}" || status=$?
  refused 2 'rank 0: a batch of 8 cannot be divided by 3 ranks: use --batch 9;'
  on 2 missing && status=0 || status=$?
  refused 1 'rank 0: missing: No such file or directory'
  on 2 "${forty[@]}" --nonsense && status=0 || status=$?
  refused 2 "rank 0: there is no option '--nonsense'"
  on 2 "${forty[@]}" --m gpt && status=0 || status=$?
  refused 2 "rank 0: there is no option '--m'"
  on 2 - --batch 8 <text && status=0 || status=$?
  refused 2 'rank 0: with --data-parallel, TEXT must be a file'
  on 1 "${forty[@]}" --mpi nowhere/librondo_mpi.so || die "one rank needs no MPI: $(cat err)"

  # Only rank 1 differs.
  cp text other
  printf x >>other
  cat >differs <<'END'
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
[ "$rank" = 1 ] && exec "$1" train --data-parallel "${@:3}" $2
exec "$1" train --data-parallel "${@:3}"
END
  differ() {
    timeout 100 "$here/../mpi/run" "$mpi" 2 bash differs "$tool" "$1" "${forty[@]:1}" "${@:2}" >out 2>err
  }
  differ '--seed 2' text && status=0 || status=$?
  refused 1 'rank 0: --seed is 2 on rank 1, but 1 on rank 0: start all ranks with the same options'
  differ '--shard-states' text && status=0 || status=$?
  refused 1 'rank 0: --shard-states is given on rank 1, but not given on rank 0: start all ranks with the same options'
  differ '--patience 3' text --validation 20 --validate-every 10 && status=0 || status=$?
  refused 1 'rank 0: --patience is 3 on rank 1, but 0 on rank 0: start all ranks with the same options'
  differ '--save model' text && status=0 || status=$?
  refused 1 'rank 0: --save is given on rank 1, but not given on rank 0: start all ranks with the same options'
  differ '--timeout 20' text && status=0 || status=$?
  refused 1 'rank 0: .* pass the same --timeout'
  differ '--nonsense' text && status=0 || status=$?
  refused 2 "rank 1: there is no option '--nonsense'"
  sed -i 's/exec "$1" train --data-parallel "${@:3}" $2/exec "$1" train --data-parallel $2 "${@:3:$#-3}"/' differs
  differ other text && status=0 || status=$?
  refused 1 'rank 0: rank 1 has another text than rank 0'
  differ missing text && status=0 || status=$?
  refused 1 'rank 1: missing: No such file or directory'

  # A component for the other MPI starts each process as a rank of its own.
  local others=mpich
  [ "$mpi" = openmpi ] || others=openmpi
  [ -e "$(dirname "$tool")/../../librondo_mpi_$others.so" ] || return 0
  on 2 "${forty[@]}" --mpi "librondo_mpi_$others.so" && die "trained with another MPI"
  grep -q "rank 0: .* started 2 ranks, but librondo_mpi_$others.so finds 1: it is for another MPI" err ||
    die "not why: $(cat err)"
}

# lose SIGNAL RANK
lose() {
  rm -f last status.*
  options=(--lost)
  on 3 "${forty[@]}" --batch 9 --steps 1000000 --compare 1 --checkpoint last --checkpoint-every 20 --timeout 5 &
  local child=$!
  until [ -e last ]; do kill -0 $child || die "training ended by itself: $(cat err)"; sleep 0.05; done
  kill "-$1" "$(cat "pid.$2")"
  local since=$SECONDS
  wait $child || true
  # MPICH's starter may end a rank's shell before it writes how its rank ended.
  [ "$(cat status.[0-2] | wc -l)" = 3 ] || die "not the status of three ranks"
  if grep -qx 0 status.*; then die "rank $2 was lost, but a rank ended with 0"; fi
  kill -KILL "$(cat "pid.$2")" 2>/dev/null || true
  ((SECONDS - since < 30)) || die "the others ended after $((SECONDS - since)) seconds"
  cat out >>err # where --lost prints both
  if grep -q 'could not write\|goes on' err; then die "a lost rank is not a failed checkpoint: $(cat err)"; fi
  # UCX ends a rank that copies from the memory of a lost one (docs/how-to/distribute.md): then two are named.
  grep -Eq "^rondo train: rank [0-2]: recorded, step [0-9]+[ :].*rank ([0-2], )?$2(, [0-2])? did not answer" err ||
    die "no word: $(cat err)"
  succeeds train "${forty[@]}" --batch 9 --steps 1000 --resume last --stop-after 500 --checkpoint next --json
  json_holds '.steps_before > 0 and .steps_before % 20 == 0'
}

loses() {
  lose KILL 1
  lose KILL 0
  lose STOP 1
}

"$3"
