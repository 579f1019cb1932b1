#!/bin/bash
# Takes the pictures of cachetop in README.md and docs/guide/cachetop.md: runs it in tmux against a workload of its own and puts what the terminal
# shows between the marks, as text, or with its colours into docs/pictures/NAME.svg. Only the programs of the workload are counted.
# Run as root, from the top of the sources: docs/capture.sh [PROGRAM]
set -euo pipefail
program=$(realpath "${1:-target/release/cachetop}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
socket=capture-$$ dir=/srv/lesson load= workers=()
mkdir "$dir"
pane() { tmux -L "$socket" "$@"; }
cleanup() {
    for group in $load "${workers[@]}"; do kill -- "-$group" 2>/dev/null || :; done
    pane kill-server 2>/dev/null || :
    rm -rf "$dir"
}
trap cleanup EXIT
export LC_ALL=C.UTF-8

dd if=/dev/urandom of="$dir/table" bs=1M count=24 2>/dev/null
dd if=/dev/urandom of="$dir/index" bs=1M count=8 2>/dev/null
sync
cat >"$dir/load" <<'LOAD'
cd "$1"
while :; do
    dd if=index of=/dev/null bs=64k             # warm
    dd if=table of=/dev/null bs=64k             # cold: taken out of the cache below
    dd if=table of=/dev/null bs=1M iflag=direct count=8
    dd if=table iflag=nocache count=0
    sleep 0.6
done 2>/dev/null
LOAD
# Processes that go on, each in its own way: what the first picture shows.
cat >"$dir/work.py" <<'WORK'
import os, random, sys, time
what, path = sys.argv[1:]
file = os.open(path, os.O_RDWR | os.O_CREAT)
size = max(os.fstat(file).st_size, 1 << 20)
while True:
    if what == "serve":  # warm
        for _ in range(1500):
            os.pread(file, 16384, random.randrange(size // 16384) * 16384)
    elif what == "backup":  # cold, from front to back
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        for at in range(0, size, 1 << 18):
            os.pread(file, 1 << 18, at)
    elif what == "lookup":  # here and there, and a part of it is cold
        os.posix_fadvise(file, 0, size // random.randint(3, 9), os.POSIX_FADV_DONTNEED)
        for _ in range(300):
            os.pread(file, 4096, random.randrange(size // 4096) * 4096)
    else:  # a journal
        for at in range(0, 1 << 20, 4096):
            os.pwrite(file, b"x" * 4096, at)
        os.fdatasync(file)
    time.sleep({"serve": 0.2, "backup": 1.7, "lookup": 0.5, "log": 0.9}[what])
WORK
ln -s "$(realpath /usr/bin/python3)" "$dir/app"
dd if=/dev/urandom of="$dir/catalog" bs=1M count=16 conv=fsync 2>/dev/null
set -m
bash "$dir/load" "$dir" &
load=$!
workers=()
for work in "serve index" "backup archive" "lookup catalog" "log journal"; do
    [ -e "$dir/${work#* }" ] || dd if=/dev/urandom of="$dir/${work#* }" bs=1M count=24 conv=fsync 2>/dev/null
    (cd "$dir" && exec ./app work.py $work) &
    workers+=($!)
done
set +m
sleep 1

# shown NAME COLUMNS LINES PATTERN KEYS... : runs it, and has what the screen shows after the keys, as soon as it has a line with this pattern,
# in $dir/NAME.txt and with colours in $dir/NAME.ansi. The machine is called "host" in there.
shown() {
    local name=$1 columns=$2 lines=$3 wanted=$4 only=${only:-dd}
    shift 4
    pane -u new-session -d -s c -x "$columns" -y "$lines" \
        "unshare -u sh -c 'hostname host; COLORTERM=truecolor TERM=tmux-256color exec \"$program\" --no-config --comm $only'"
    sleep "${warm:-15}"
    for key in "$@"; do pane send-keys -t c "$key"; sleep 0.5; done
    # A moment in which something happens.
    for _ in {1..200}; do
        ! pane capture-pane -t c -p | grep -qE "$wanted" || break
        sleep 0.2
    done
    pane capture-pane -t c -p -e -N >"$dir/$name.ansi"
    pane send-keys -t c q q
    sleep 1
    # What the builder of the kernel has added to its number is left out, and the line keeps its length.
    python3 - "$dir/$name" <<'TEXT'
import re, sys
text = open(sys.argv[1] + ".ansi").read()
text = re.sub(r"(Linux [0-9.]*[0-9])([^ ]*)(.*?)( ?)([ ─])(?=[ ─]*(?:\x1b\[[0-9;]*m)* *[0-9:]{8})",
              lambda m: m[1] + m[3] + m[4] + m[5] * (1 + len(m[2])), text, count=1)
text = re.sub(r"engine  e[very]*(?= {3})", lambda m: "engine".ljust(len(m[0])), text, count=1)
open(sys.argv[1] + ".ansi", "w").write(text)
plain = re.sub(r"\x1b\[[0-9;]*m|\x1b\([AB0]|[\x0e\x0f]", "", text)
open(sys.argv[1] + ".txt", "w").write("\n".join(l.rstrip() for l in plain.split("\n") if not l.startswith("cgroup ")))
TEXT
}

# drawing NAME COLUMNS LINES PATTERN KEYS... : the same as a picture with its colours.
drawing() {
    shown "$@"
    python3 docs/pictures/svg.py <"$dir/$1.ansi" >"docs/pictures/$1.svg"
    echo "drew $1"
}

# picture NAME PATTERN KEYS... : the same as text between the marks.
picture() {
    local name=$1
    shift
    shown "$name" 80 24 "$@"
    python3 - "$name" "$dir/$name.txt" <<'PUT'
import re, sys
name, path = sys.argv[1:]
text = "".join("    " + line.rstrip() + "\n" for line in open(path)).rstrip() + "\n"
text = re.sub(r"\n    \n(    \n)+", "\n    \n", text)
begin, end = f"<!-- picture {name} -->\n", "<!-- end -->"
for page in "README.md", "docs/guide/cachetop.md":
    old = open(page).read()
    if begin in old:
        head, rest = old.split(begin, 1)
        open(page, "w").write(head + begin + "\n" + text + "\n" + end + rest.split(end, 1)[1])
PUT
    echo "took $name"
}

warm=70 only=app drawing processes 120 36 ' [1-9][0-9]* +[1-9][0-9]* .* backup archive'
drawing help 80 24 'Nine kinds' h
picture files '/table$' 6 m m
picture details 'cold-readahead' 6 m m Down Enter
