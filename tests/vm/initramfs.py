"""What a guest starts from: an initramfs of busybox, kernel modules, the added programs and a command."""

import hashlib
import lzma
import os
import re
import shutil
import subprocess

from kernels import CACHE
from kernels import FULL
from kernels import VmError
from kernels import kernel_files

MODULES = ["virtio_pci", "virtio_blk", "loop", "ext4", "xfs", "btrfs", "overlay", "fuse", "nfsv4", "nfsd"]

# Of the kernels for all machines only.
FULL_MODULES = ["9p", "9pnet_virtio"]

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/sbin HOME=/root TERM=dumb
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
# The console (ttyS0) belongs to the kernel; the command's output has a line of its own.
stty -F /dev/ttyS1 raw -echo
exec </dev/null >/dev/ttyS1 2>&1
die() { echo "@@VM-FAIL $*"; sleep 1; poweroff -f; }
mount -t tmpfs tmp /tmp
mount -t tmpfs tmpfs /mnt
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup || die "mount cgroup2"
ln -s /proc/self/fd /dev/fd; mkdir /dev/shm; mount -t tmpfs shm /dev/shm
ip link set lo up
for m in /modules/*; do insmod $m || die "insmod $m"; done
mkdir /mnt/tmpfs; mount -t tmpfs tmpfs /mnt/tmpfs
for d in /sys/block/vd*; do
    [ -e $d ] || continue
    fs=$(cat $d/serial) dev=/dev/${d##*/}
    if [ $fs = results ]; then results=$dev; continue; fi
    mkdir /mnt/$fs; mount -t $fs $dev /mnt/$fs || die "mount $fs"
done
echo @@VM-BEGIN
cd /root
sh /script
status=$?
# The results are a tar archive written straight onto a disk: nothing else to load, mount or flush.
[ -z "$results" ] || { tar -cf $results -C /results . && sync; } || die "save the results"
echo "@@VM-EXIT $status"
exec >/dev/null 2>&1   # the last close of the line waits until it has been sent
poweroff -f
"""


class Cpio:
    """Writes a "newc" archive, the kernel's initramfs format. Archives may be put one after the other."""

    def __init__(self):
        self.data, self.names = bytearray(), set()

    def entry(self, name, mode, content):
        name = name.strip("/")
        if name in self.names:
            return
        if os.path.dirname(name):
            self.directory(os.path.dirname(name))
        self.names.add(name)
        raw = name.encode() + b"\0"
        fields = [len(self.names), mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(raw), 0]
        for part in (b"070701" + b"".join(b"%08x" % f for f in fields) + raw, content):
            self.data += part + bytes(-len(part) % 4)

    def directory(self, name):
        self.entry(name, 0o40755, b"")

    def file(self, name, source, mode=None):
        with open(source, "rb") as f:
            self.entry(name, 0o100000 | (mode or os.stat(source).st_mode & 0o777), f.read())

    def program(self, name, source):
        """A file, and where it is a dynamic program the libraries it needs."""
        self.file(name, source)
        libraries = subprocess.run(["ldd", source], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for library in re.findall(r"(/\S+) \(0x", libraries.stdout):
            self.file(library, library)

    def finish(self):
        self.entry("TRAILER!!!", 0, b"")
        return bytes(self.data) + bytes(-len(self.data) % 512)


def module_files(name):
    """The modules to load, dependencies first."""
    directory = kernel_files(name)[1]
    base, release = directory[: directory.index("/lib/modules")], os.path.basename(directory)
    if not os.path.exists(f"{directory}/modules.dep.bin"):
        subprocess.run(["depmod", "-b", base, release], check=True)
    order = []
    for module in MODULES + (FULL_MODULES if name.endswith(FULL) else []):
        shown = subprocess.run(["modprobe", "-d", base, "-S", release, "--show-depends", module], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if shown.returncode:
            raise VmError(f"kernel {name}: module {module}: {shown.stderr.strip()}")
        for path in re.findall(r"^insmod (\S+)", shown.stdout, re.M):
            path = path if path.startswith(base) else base + path
            if path not in order:
                order.append(path)
    return order


def system_part(name):
    """Path of the cached part of the initramfs, the same for every run of one kernel."""
    # Checkouts share the cache, and may differ in what a guest gets.
    kind = hashlib.sha256("\n".join([INIT, *MODULES, *FULL_MODULES]).encode()).hexdigest()[:8]
    path = f"{CACHE}/initramfs/{name}-{kind}"
    busybox = shutil.which("busybox")
    if not busybox:
        raise VmError("busybox is missing: apt-get install busybox-static")
    newest = max(os.path.getmtime(p) for p in (kernel_files(name)[1], busybox, __file__))
    if os.path.exists(path) and os.path.getmtime(path) > newest:
        return path
    archive = Cpio()
    for d in "sbin proc sys dev tmp mnt etc run root results lib64 usr/lib var/tmp".split():
        archive.directory(d)
    archive.program("bin/busybox", busybox)
    archive.entry("init", 0o100755, INIT.encode())
    archive.entry("etc/passwd", 0o100644, b"root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    archive.entry("etc/group", 0o100644, b"root:x:0:\nnogroup:x:65534:\n")
    for i, module in enumerate(module_files(name)):
        target = f"modules/{i:02}-{os.path.basename(module).split('.ko')[0]}.ko"
        if module.endswith(".xz"):
            with lzma.open(module) as f:
                archive.entry(target, 0o100644, f.read())
        elif module.endswith(".zst"):
            archive.entry(target, 0o100644, subprocess.check_output(["zstd", "-dcq", module]))
        else:
            archive.file(target, module)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.{os.getpid()}", "wb") as f:
        f.write(archive.finish())
    os.rename(f"{path}.{os.getpid()}", path)
    return path


def run_part(adds, script):
    """The part that changes with each run: the added files and the command."""
    archive = Cpio()
    for add in adds:
        source, _, target = add.partition(":")
        if os.path.isdir(source):
            for directory, _, files in os.walk(source):
                inside = os.path.join(target or source, os.path.relpath(directory, source))
                for f in files:
                    archive.program(os.path.normpath(f"{inside}/{f}"), f"{directory}/{f}")
        elif os.path.exists(source):
            archive.program(target or "bin/" + os.path.basename(source), source)
        else:
            raise VmError(f"--add {source}: no such file")
    archive.entry("script", 0o100644, script.encode() + b"\n")
    return archive.finish()
