#!/usr/bin/env python3
"""How much of the time of real commands has a cause in the report, beside the kernel's own clocks.

    bench/causes.py [KERNEL] [--cachestat PROGRAM] [--only WORD]... [--reports DIR]

Boots a guest of tests/vm (6.12 unless told otherwise) with a slow disk, runs each command cold and warm as `cachestat -r 2
--cold all -- COMMAND`, in a cgroup of its own for each run, and prints a table in Markdown. Beside what the report says stands
what was counted by others: processor time of the cgroup (cpu.stat), time in which all or some of its tasks waited for storage
(io.pressure) or for a processor (cpu.pressure), and what the device read and wrote (/sys/block). The programs that it starts
(grep, tar, sqlite3, git and so on) are those of this machine. Some ten minutes in emulation; the reports are left in target/causes.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("kernel", nargs="?", default="6.12")
parser.add_argument("--cachestat", default="target/debug/cachestat")
parser.add_argument("--only", action="append", default=[], help="commands whose line has this word")
parser.add_argument("--reports", default="target/causes")
parser.add_argument("--table", action="store_true", help="only print the table of reports that are there")
args = parser.parse_args()

# Below /mnt/ext4, which is slow; /mnt/tmpfs is memory.
COMMANDS = [
    "grep -rc some many",
    "du -s many",
    "tar cf /mnt/tmpfs/out.tar tree",
    "cp -r tree copy-$RUN",
    "find tree -type f -exec md5sum {} +",
    "sha256sum blob",
    "dd if=blob of=/dev/null bs=1M",
    "dd if=/dev/zero of=written bs=256k count=64 conv=fsync",
    "sort -o /mnt/tmpfs/sorted text",
    "xz -kc -1 text",
    "sqlite3 db 'select sum(length(v)) from t'",
    "sqlite3 -cmd 'pragma mmap_size=1000000000' db 'select sum(length(v)) from t'",
    "sqlite3 db 'select sum(length(v)) from t where id in (select id from keys)'",
    "sqlite3 db 'update t set v = v || 1 where id % 40 = 7'",
    "git -C repo status",
    "git -C repo grep -c some",
]

# io.pressure is a mean over processors, less than what a task waited that moves between them: all others stay on the first.
THREADS = ["sort ", "git -C repo grep"]

PROGRAMS = "taskset grep du tar cp find md5sum sha256sum dd sort xz sqlite3 git bash".split()

PREPARE = r"""
set -e
cd /mnt/ext4
mkdir many tree repo
random() { dd if=/dev/urandom bs=1k count=$1 2>/dev/null | hexdump -v -e '16/1 "%02x" "\n"' | head -c $(($1 * 1024)); }
random 8192 >text
for d in $(seq 60); do
    mkdir many/d$d
    for f in $(seq 100); do echo "some 25 bytes of text here" >many/d$d/f$f; done
done
for d in $(seq 12); do
    mkdir tree/d$d
    for f in $(seq 100); do dd if=text of=tree/d$d/f$f bs=9k count=1 skip=$((d * 60 + f)) 2>/dev/null; done
done
cp -r tree/d1 tree/d2 tree/d3 tree/d4 tree/d5 tree/d6 repo/
cat text text text text >blob
export GIT_CONFIG_NOSYSTEM=1 HOME=/root
git -C repo init -q
git -C repo add .
git -C repo -c user.name=x -c user.email=x@example.org commit -q -m x
sqlite3 db 'create table t (id integer primary key, v text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 4000) insert into t select i, hex(randomblob(2000)) from n;
create table keys (id); insert into keys select id from t order by random() limit 300;'
sync
echo +io +cpu +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
cat >/bin/before <<'END'
#!/bin/sh
run=$(($(cat /tmp/run) + 1))
echo $run >/tmp/run
mkdir /sys/fs/cgroup/job-$(cat /tmp/number)-$run
cat $disk >/tmp/before
END
cat >/bin/after <<'END'
#!/bin/sh
name=$(cat /tmp/number)-$(cat /tmp/run)
group=/sys/fs/cgroup/job-$name
{
    echo "disk_before $(cat /tmp/before)"
    echo "disk_after $(cat $disk)"
    for file in cpu.stat io.pressure cpu.pressure; do sed "s/^/$file /" $group/$file; done
} >/results/$name.clocks
END
chmod +x /bin/before /bin/after
disk=/sys/class/block/$(sed -n 's|^/dev/\(vd.\) /mnt/ext4 .*|\1|p' /proc/mounts)/stat
export disk
set +e
"""


def guest_script():
    """The shell script that the guest runs."""
    lines = [PREPARE]
    for number, command in enumerate(COMMANDS):
        if args.only and not any(word in command for word in args.only):
            continue
        pinned = "" if any(word in command for word in THREADS) else "taskset 1 "
        joined = f"read RUN </tmp/run; echo 0 >/sys/fs/cgroup/job-{number:02}-$RUN/cgroup.procs; exec {pinned}{command} >/tmp/out"
        line, quoted = (f"'{text}'" for text in (joined.replace("'", "'\\''"), command.replace("'", "'\\''")))
        lines.append(f"echo {quoted}; echo {number:02} >/tmp/number; echo 0 >/tmp/run; sync")
        lines.append(f"cachestat --ignore-failure -r 2 --cold all --prepare before --conclude after --json "
                     f"-o /results/{number:02}.json -- bash -c {line}")
    lines.append("exit 0")
    return "\n".join(lines)


def run_guest():
    shutil.rmtree(args.reports, ignore_errors=True)
    cachestat = "target/without-debug/cachestat-of-causes"
    os.makedirs(os.path.dirname(cachestat), exist_ok=True)
    subprocess.run(["strip", "--strip-debug", "-o", cachestat, args.cachestat], check=True)
    adds = ["--add", f"{cachestat}:/bin/cachestat"]
    for program in PROGRAMS:
        path = shutil.which(program)
        if not path:
            sys.exit(f"bench/causes.py: {program} is missing: apt-get install it")
        adds += ["--add", f"{os.path.realpath(path)}:/usr/bin/{program}"]
    slow = "iops-read=100 bps-read=4194304 bps-write=8388608"
    throttle = " ".join(f"-set drive.ext4.throttling.{word}" for word in slow.split())
    subprocess.run(["tests/vm/vm", "run", args.kernel, "--fs", "ext4", "--timeout", "1500", "--boot-timeout", "400",
                    "--qemu", throttle, "--results", args.reports, *adds, "--",
                    "export PATH=/usr/bin:$PATH\n" + guest_script()], check=True)


def clocks(path):
    """What others counted in one run: seconds and MiB."""
    with open(path) as f:
        text = f.read()
    before, after = (list(map(int, re.search(rf"^disk_{w} (.*)", text, re.M)[1].split())) for w in ("before", "after"))

    def figure(pattern):
        found = re.search(pattern, text, re.M)
        return int(found[1]) / 1e6 if found else None

    return {
        "cpu": figure(r"^cpu.stat usage_usec (\d+)"),
        "io_some": figure(r"^io.pressure some.*total=(\d+)"),
        "queue": figure(r"^cpu.pressure some.*total=(\d+)"),
        "read": (after[2] - before[2]) / 2048,
        "written": (after[6] - before[6]) / 2048,
    }


NAMES = {"data_s": "data", "metadata_s": "metadata", "lookups_s": "names", "writing_s": "writing",
         "queue_s": "queue", "cpu_s": "processor", "others_s": "others"}


def seconds(value):
    return "-" if value is None else f"{value:.2f}"


def row(command, run, other):
    """One line of the table: a run by the report and by others."""
    wall, parts = run["wall_s"], run["time_parts"]
    known = {NAMES[k]: parts[k] for k in NAMES if parts[k] is not None}
    if parts["unexplained_s"] is None:
        whole, share = sum(known.values()), "threads"
    else:
        whole, share = wall, f"{100 * (1 - parts['unexplained_s'] / wall):.0f} %"
    told = [f"{n} {100 * s / whole:.0f}" for n, s in sorted(known.items(), key=lambda p: -p[1]) if s >= 0.05 * whole]
    waits = sum(known.get(n, 0) for n in ("data", "metadata", "writing"))
    processor = known.get("processor", 0) + known.get("names", 0)
    return (f"| {command} | {wall:.2f} s | {share} | {', '.join(told)} | {seconds(processor)} / {seconds(other['cpu'])} "
            f"| {seconds(waits)} / {seconds(other['io_some'])} | {seconds(known.get('queue'))} / {seconds(other['queue'])} "
            f"| {(run['device_read_bytes'] or 0) / 2**20:.1f} / {other['read']:.1f} |")


def table():
    print("| command | wall | explained | per cent of it | processor, s: report / cgroup | waits for storage, s: report / io.pressure "
          "| queue, s: report / cpu.pressure | read, MiB: report / device |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in sorted(glob.glob(f"{args.reports}/*.json")):
        number = os.path.basename(path)[:2]
        with open(path) as f:
            report = json.load(f)
        for run in report["runs"]:
            n = run["number"]
            command = f"`{COMMANDS[int(number)]}`, {'warm' if n == 2 else 'cold'}"
            print(row(command, run, clocks(f"{args.reports}/{number}-{n}.clocks")))


os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
if not args.table:
    run_guest()
table()
