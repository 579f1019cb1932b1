#!/usr/bin/env python3
"""Times cachedu beside vmtouch, fincore, pcstat, du, dust, gdu and ncdu, in turn in one run.

    bench/cachedu.py [--cachedu PROGRAM] [--pcstat PROGRAM] [--files N] [--runs N] [--sparse BYTES]

du, dust, gdu and ncdu do not know the cache: they walk the same tree for sizes, and show what a walk costs.

As root. The files lie in a file system of their own in an image; it is mounted anew before each cold run, so that
inodes, names and pages of this file system are gone and those of the rest of the machine are not. What is not
installed is left out, and the output says so. Each line: median of the runs, fastest and slowest.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--cachedu", default="target/release/cachedu")
parser.add_argument("--pcstat", default=shutil.which("pcstat"))
parser.add_argument("--files", type=int, default=100_000)
parser.add_argument("--runs", type=int, default=5)
parser.add_argument("--sparse", type=int, default=1 << 40)
parser.add_argument("--timeout", type=int, default=300)
args = parser.parse_args()
cachedu = os.path.abspath(args.cachedu)


def run(command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more).stdout


class Disk:
    """An ext4 image that can be made cold."""

    def __init__(self, top, files):
        self.image, self.mount = f"{top}/image", f"{top}/mnt"
        os.mkdir(self.mount)
        with open(self.image, "wb") as image:
            image.truncate((files * 6 << 10) + (4 << 30))
        run(["mkfs.ext4", "-q", "-F", "-N", str(files * 2 + 12_000), "-E", "lazy_itable_init=0", self.image])
        self.up()

    def up(self):
        run(["mount", "-o", "loop", self.image, self.mount])

    def down(self):
        run(["umount", self.mount])

    def cold(self):
        self.down()
        self.up()


def timed(command):
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             shell=isinstance(command, str), start_new_session=True)
    # To wait with a timeout is to look every 50 ms.
    late = threading.Timer(args.timeout, lambda: os.killpg(child.pid, signal.SIGKILL))
    late.start()
    code = child.wait()
    took = time.perf_counter() - start
    late.cancel()
    if code == -signal.SIGKILL:
        return None
    if code not in (0, 1):
        raise subprocess.CalledProcessError(code, command)
    return took


def compare(title, commands, runs, before=lambda: None):
    print(f"\n{title}")
    times = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            if times[name] and times[name][-1] is None:
                continue
            before()
            times[name].append(timed(command))
    for name, all_runs in times.items():
        if None in all_runs:
            print(f"  {name:32} more than {args.timeout} s")
            continue
        # One fast run tells little of a slow program that ran once.
        spread = f"{min(all_runs):.4f} to {max(all_runs):.4f}, {len(all_runs)} runs"
        print(f"  {name:32} {statistics.median(all_runs):9.4f} s   ({spread})", flush=True)


def rivals(target, lists):
    """The commands for one file or tree; `lists` for programs that walk no trees."""
    named = f"find {target} -type f -print0 | xargs -0" if lists else None
    commands = {}
    if shutil.which("vmtouch"):
        commands["vmtouch"] = ["vmtouch", target]
    if shutil.which("fincore"):
        commands["find | fincore" if lists else "fincore"] = (
            f"{named} fincore -b -n" if lists else ["fincore", "-b", target])
    if args.pcstat:
        commands["find | pcstat" if lists else "pcstat"] = (
            f"{named} {args.pcstat} -terse" if lists else [args.pcstat, "-terse", target])
    return commands


def walkers(tree):
    """What walks the same tree and asks about sizes only."""
    known = {
        "du -s": ["du", "-s", tree],
        "dust": ["dust", "-d", "0", "-P", tree],
        "gdu": ["gdu", "-n", "-p", "-s", tree],
        "ncdu": ["ncdu", "-0", "-o", "/dev/null", tree],
    }
    return {name: command for name, command in known.items() if shutil.which(command[0])}


def main():
    if os.geteuid() != 0:
        sys.exit("run it as root: it mounts a file system")
    for tool in ("vmtouch", "fincore", "dust", "gdu", "ncdu"):
        if not shutil.which(tool):
            print(f"left out: {tool} is not installed")
    if not args.pcstat:
        print("left out: pcstat is not installed")
    print(f"kernel {os.uname().release}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print(run([cachedu, "--version"]).decode().strip())
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as top:
        disk = Disk(top, args.files)
        try:
            small(disk)
            warm(disk)
            sparse(disk)
        finally:
            disk.down()


def small(disk):
    tree = f"{disk.mount}/tree"
    for i in range(args.files):
        if i % 1000 == 0:
            os.makedirs(f"{tree}/{i // 1000:04}")
        with open(f"{tree}/{i // 1000:04}/{i:06}", "wb") as file:
            file.write(b"x" * 3000)
    os.sync()
    commands = {"cachedu": [cachedu, "-q", "-d", "0", tree], "cachedu -j 1": [cachedu, "-q", "-j", "1", "-d", "0", tree]}
    commands |= rivals(tree, True) | walkers(tree)
    # The same question, the same answer, before anything is timed.
    total = json.loads(run([cachedu, "--json", "-d", "0", tree]).splitlines()[-1])
    told = [total["pages"], total["cached"]]
    if shutil.which("vmtouch"):
        line = next(l for l in run(["vmtouch", tree]).decode().splitlines() if "Resident Pages" in l)
        cached, pages = line.split()[2].split("/")
        # Something may reclaim pages between the two questions.
        assert told[0] == int(pages) and abs(told[1] - int(cached)) <= told[0] // 100 + 10, (told, line)
        print(f"cachedu says {told[1]} of {told[0]} pages, vmtouch {cached} of {pages}")
    print(f"{args.files} files of one page, {told[1]} of {told[0]} pages cached")
    compare("small files, warm", commands, args.runs)
    compare("small files, cold (mounted anew)", commands, args.runs, disk.cold)
    names = f"{disk.mount}/names"
    run(f"find {tree} -type f -print0 > {names}", shell=True)
    named = {f"cachedu --files-from, -j {n}": [cachedu, "-q", "-j", str(n), "--csv", "-0", "--files-from", names] for n in (1, 2)}
    compare("files by name, warm", named, args.runs)
    threads = {f"cachedu -j {n}": [cachedu, "-q", "-j", str(n), "-d", "0", tree] for n in (1, 2, 4, 8)}
    compare("threads, warm", threads, args.runs)
    compare("threads, cold", threads, args.runs, disk.cold)


def warm(disk):
    """Bringing 1 GiB in: one file, and ten thousand."""
    large, many, page = f"{disk.mount}/large", f"{disk.mount}/many", b"x" * 104_857
    os.mkdir(many)
    with open(large, "wb") as file:
        for _ in range(10_240):
            file.write(page)
    for i in range(10_240):
        with open(f"{many}/{i:05}", "wb") as file:
            file.write(page)
    os.sync()
    for what, path in (("one file of 1 GiB", large), ("10 240 files of 102 KiB", many)):
        kept = f"{disk.image}.set"
        disk.cold()
        # 1: a part is gone again; some machines reclaim all the time.
        subprocess.run([cachedu, "-q", "--load", path], check=False, stdout=subprocess.DEVNULL)
        run([cachedu, "-q", "--save", kept, path])
        commands = {"cachedu --load": [cachedu, "-q", "--load", path], "cachedu --restore": [cachedu, "-q", "--restore", kept]}
        if shutil.which("vmtouch"):
            commands["vmtouch -t"] = ["vmtouch", "-q", "-t", path]
        commands["cat"] = f"find {path} -type f -print0 | xargs -0 cat > /dev/null"
        compare(f"bringing in {what} (mounted anew)", commands, args.runs, disk.cold)


def sparse(disk):
    path = f"{disk.mount}/sparse"
    with open(path, "wb") as file:
        file.truncate(args.sparse)
        for part in range(16):
            file.seek(args.sparse // 16 * part)
            file.write(b"x" * 4096)
    commands = {"cachedu": [cachedu, path], "cachedu --map": [cachedu, "--map", path]}
    print(f"\none sparse file of {args.sparse >> 30} GiB, 16 pages cached")
    compare("sparse, warm", commands, args.runs)
    compare("sparse, cold (mounted anew)", commands, args.runs, disk.cold)
    # These look at every page of it: once is enough.
    compare("sparse, warm, the others", rivals(path, False), 1)


main()
