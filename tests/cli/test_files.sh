#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# PR-12: files that the tool writes. A file is the old one or the new one, whole, also on a full disk, for which the limit
# on the size of files stands here. What is no regular file is written directly. No output takes the place of an input.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
small=(--context 4 --embedding 8 --hidden 16 --batch 4)
"$tool" train text "${small[@]}" --steps 2 --save model --dump-graph step.json >/dev/null
awk 'BEGIN { print "id,lower,upper,size"; for (i = 0; i < 400; i++) print "b" i "," i "," i + 3 "," 100 + i }' >buffers.csv
for ((i = 0; i < 50; i++)); do echo 300; done >history

serve=(serve dense --load --sizes 2 --requests 4 --least 2 --most 4 --median 3 --seconds 0.2 --clients 1 --streams 1)

# Each output once: the option, then the command that writes more than 4 KiB there.
outputs=(
  "--output plan buffers.csv --fast"
  "--svg plan buffers.csv --fast"
  "--output report step.json"
  "--report train text ${small[*]} --steps 2"
  "--dump-graph train text ${small[*]} --steps 2"
  "--save train text --steps 2"
  "--checkpoint train text --steps 2"
  "--trace train text ${small[*]} --steps 60"
  "--report ${serve[*]}"
)

# 1. The old file is replaced, with its permissions; a link stays; nothing else is left in the folder.
for row in "${outputs[@]}"; do
  read -ra words <<<"$row"
  rm -rf out.d
  mkdir out.d
  echo old >out.d/file
  chmod 640 out.d/file
  ln -s file out.d/link
  succeeds "${words[@]:1}" "${words[0]}" out.d/link
  [ "$(head -c 3 out.d/file | tr -d "\0")" != old ] || die "$row: the old file is still there"
  [ "$(stat -c %a out.d/file)" = 640 ] || die "$row: permissions $(stat -c %a out.d/file)"
  [ -L out.d/link ] || die "$row: the link was replaced"
  [ "$(find out.d -mindepth 1 | wc -l)" -eq 2 ] || die "$row: left $(find out.d)"
done

# 2. A full disk: the old file stays, whole, and the reason is said. (The limit would count the memory of a device too.)
for row in "${outputs[@]:0:3}"; do
  read -ra words <<<"$row"
  rm -rf out.d
  mkdir out.d
  seq 1000 >out.d/file
  cp out.d/file old
  status=0
  (ulimit -f 4 && exec "$tool" "${words[@]:1}" "${words[0]}" out.d/file >out 2>err) || status=$?
  [ "$status" -eq 1 ] || die "$row: exit status $status: $(cat err)"
  grep -q 'ulimit -f' err || die "$row: $(cat err)"
  [ "$(find out.d -mindepth 1 | wc -l)" -eq 1 ] || die "$row: left $(find out.d)"
  cmp old out.d/file || die "$row: the old file is incomplete"
done

# The others on a disk that is full, where one can be mounted. A trace has replaced the old file with its first line.
on_full_disk() {
  mkdir -p disk
  mount -t tmpfs -o size=8192 none disk
  for row in "$@"; do
    read -ra words <<<"$row"
    rm -f disk/*
    seq 600 >disk/file
    cp disk/file old
    local status=0
    "$tool" "${words[@]:1}" "${words[0]}" disk/file >out 2>err || status=$?
    [ "$status" -eq 1 ] || die "$row: exit status $status: $(cat err)"
    grep -q 'No space left on device' err || die "$row: $(cat err)"
    [ "$(ls disk)" = file ] || die "$row: left $(ls disk)"
    if [ "${words[0]}" = --trace ]; then
      jq -e 'length > 10' disk/file >/dev/null || die "$row: the trace is incomplete: $(tail -c 100 disk/file)"
    else
      cmp old disk/file || die "$row: the old file is incomplete"
    fi
  done
}
export -f on_full_disk die
export tool
for unshare in 'unshare -m' 'unshare -Urm'; do
  $unshare mount -t tmpfs none /mnt 2>/dev/null || continue
  $unshare bash -euc 'on_full_disk "$@"' bash "${outputs[@]}" || exit 1
  break
done

# 3. Devices and pipes are written directly.
for row in "${outputs[@]}"; do
  read -ra words <<<"$row"
  succeeds "${words[@]:1}" "${words[0]}" /dev/null
  [ -c /dev/null ] || die "$row: /dev/null was replaced"
  case $row in --trace*) continue ;; esac # it writes on after each event
  status=0
  "$tool" "${words[@]:1}" "${words[0]}" /dev/full >out 2>err || status=$?
  [ "$status" -eq 1 ] || die "$row to /dev/full: exit status $status"
  grep -q 'No space left on device' err || die "$row to /dev/full: $(cat err)"
done
rm -f pipe
mkfifo pipe
cat pipe >through &
"$tool" plan buffers.csv --fast --output pipe >/dev/null
wait $!
"$tool" plan buffers.csv --fast --output direct.csv >/dev/null
cmp through direct.csv || die "a pipe got something else"
[ -p pipe ] || die "the pipe was replaced"
"$tool" report step.json -o /dev/stdout >out
grep -q '</html>' out || die "/dev/stdout: $(head -c 100 out)"

# 4. What is written is not what is read, by whatever name, and not what is written too.
cp buffers.csv in.csv
cp history sizes
cp model kept
mkdir -p folder
ln -sf ../in.csv folder/link
ln -f in.csv hard
for path in in.csv ./in.csv folder/link hard; do
  fails 1 'cannot be written: it is the FILE that is read; name another file' plan in.csv --output $path
  fails 1 'cannot be written: it is the FILE that is read; name another file' plan in.csv --svg $path
done
fails 1 'both cannot be written: it is the file of --svg' plan buffers.csv --svg both --output folder/../both
ln -s ../both folder/dangling
fails 1 'folder/dangling cannot be written: it is the file of --svg' plan buffers.csv --svg both --output folder/dangling
fails 1 'in.csv cannot be written: it is the FILE that is read' plan - --output in.csv <in.csv
succeeds plan - --output other.csv <in.csv
fails 1 'sizes cannot be written: it is the file of --history' serve dense --load --history sizes --report sizes
fails 1 'step.json cannot be written: it is the FILE that is read' report step.json -o ./step.json
RONDO_TRACE=kept fails 1 'kept cannot be written: it is the MODEL that is read' generate kept
RONDO_TRACE=sizes fails 1 'sizes cannot be written: it is the file of --history' session plan --history sizes
RONDO_TRACE=both fails 1 'both cannot be written: it is RONDO_TRACE' plan buffers.csv --output both
cmp buffers.csv in.csv || die "the list was overwritten"
cmp history sizes || die "the history was overwritten"
cmp model kept || die "the model was overwritten"

# 5. No message has an empty name in it.
fails 2 'the file of --output has an empty name' plan buffers.csv --output ''
fails 2 'the file of --resume has an empty name' train text --resume ''
fails 2 'the FILE that is read has an empty name' plan ''
