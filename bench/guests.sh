#!/usr/bin/env bash
# What watching costs in instructions, on kernels of tests/vm: bench/guests.sh [KERNEL]...
#
# Guests of one processor count instructions as time, so the figures are the same on every machine. Their processor has no
# fast string instructions (ERMS): with them the kernel copies by "rep movsb", each byte counts as an instruction, and what
# watching adds looks two to three times as small beside them as it is. Loading takes
# long in emulation: some minutes for each kernel. COST_ARGS="--without-functions" measures that plan, --latency one with the clock;
# COST_FS=xfs reads from another file system than ext4. bcc's cachestat (of Debian's libbpf-tools) is measured beside ours where it
# is; $BCC names it. That of Debian 12 (0.26) does not load on 6.1, 6.12 and 7.2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

programs=$(cargo bench --locked --no-run --bench cost --message-format=json |
    python3 -c 'import json, sys
for m in map(json.loads, sys.stdin):
    if m.get("executable"): print(m["target"]["name"], m["executable"])')
cost=$(sed -n 's/^cost //p' <<<"$programs")
cachestat=$(sed -n 's/^cachestat //p' <<<"$programs")
fs=${COST_FS:-ext4}
bcc=${BCC-/usr/sbin/cachestat} theirs=()
[ ! -x "$bcc" ] || theirs=(--add "$bcc:/bin/bcc-cachestat")
[ $# -gt 0 ] || set -- 6.1 6.12 7.2

status=0
for kernel in "$@"; do
    tests/vm/vm run "$kernel" --smp 1 --accel tcg-single --qemu '-icount shift=1,sleep=off -cpu max,erms=off,fsrm=off' --fs "$fs" \
        --timeout 1800 --boot-timeout 600 --add "$cost:/bin/cost" --add "$cachestat:/bin/cachestat" "${theirs[@]}" \
        --add "$(command -v du):/bin/du" --add "$(command -v grep):/bin/grep" --add "$(command -v fio):/bin/fio" -- \
        "cost --guest --dir /mnt/$fs --cachestat /bin/cachestat ${theirs[*]:+--bcc /bin/bcc-cachestat} ${COST_ARGS-}" || status=1
    echo
done
exit $status
