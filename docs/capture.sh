#!/bin/bash
# Takes the pictures of cachetop in README.md and docs/guide/cachetop.md: runs it in tmux (80 columns, 24 lines) against a workload of its own and
# puts what the terminal shows between the marks. Only the programs of the workload are counted. Run as root, from the top of the sources: docs/capture.sh [PROGRAM]
set -euo pipefail
program=$(realpath "${1:-target/release/cachetop}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
socket=capture-$$ dir=/srv/lesson load=
mkdir "$dir"
pane() { tmux -L "$socket" "$@"; }
cleanup() {
    [ -z "$load" ] || kill -- "-$load" 2>/dev/null || :
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
set -m
bash "$dir/load" "$dir" &
load=$!
set +m
sleep 1

# picture NAME PATTERN KEYS... : what the screen shows after the keys, as soon as it has a line with this pattern.
picture() {
    local name=$1 wanted=$2
    shift 2
    pane -u new-session -d -s c -x 80 -y 24 "env TERM=screen-256color '$program' --no-config --comm dd"
    sleep 15
    for key in "$@"; do pane send-keys -t c "$key"; sleep 0.5; done
    # A moment in which something happens.
    for _ in {1..200}; do
        ! pane capture-pane -t c -p | grep -qE "$wanted" || break
        sleep 0.2
    done
    pane capture-pane -t c -p |
        # What names this machine and not the workload is left out.
        sed -E "s/ $(hostname) / host /; s/(Linux [0-9.]*[0-9])[^ ]*/\1/; /^cgroup /d" >"$dir/$name.txt"
    pane send-keys -t c q q
    sleep 1
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

picture processes '^ *[0-9]+ +0 +[0-9]+ +6[0-9]{3} .* dd$'
picture files '/table$' 6 m m
picture details 'cold-readahead' 6 m m Down Enter
