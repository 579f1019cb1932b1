#!/usr/bin/env bash
# What ways of attaching cost and lose, on kernels of tests/vm: bench/attachments.sh [KERNEL]...
#
# Costs are instructions of a guest with one processor, the same on every machine. Losses are measured with two
# processors, under the kernel's own preemption model and under full preemption; they depend on the machine, for
# emulation makes every program long. All figures are left in target/attachments.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$(cargo bench --locked --no-run --bench attachments --message-format=json |
    python3 -c 'import json, sys
for m in map(json.loads, sys.stdin):
    if m.get("executable") and m["target"]["name"] == "attachments": print(m["executable"])')
[ $# -gt 0 ] || set -- 6.1 6.12 7.2

status=0
run() { # KERNEL NAME ARGUMENTS OPTION...
    local kernel=$1 into=target/attachments/$1-$2 arguments=$3
    shift 3
    tests/vm/vm run "$kernel" --fs ext4 --timeout 1200 --boot-timeout 600 --results "$into" \
        --add "$program:/bin/attachments" "$@" -- \
        "attachments $arguments --dir /mnt/ext4 --json /results/figures.json" || status=1
    echo
}
for kernel in "$@"; do
    run "$kernel" costs "--guest --only-costs" --smp 1 --accel tcg-single --qemu '-icount shift=1,sleep=off'
    run "$kernel" losses --only-losses --smp 2
    run "$kernel" losses-full --only-losses --smp 2 --append preempt=full
done
exit $status
