"""Where the kernels come from: Debian's archive, by apt, into a cache."""

import glob
import os
import re
import subprocess
import tempfile

# One line per kernel: the version it stands for, and the Debian suite that carries it. See README.md.
KERNELS = {
    "5.10": "bullseye",
    "6.1": "bookworm",
    "6.12": "trixie",
    "7.2": "sid",
    "7.3": "experimental",
}
# Behind a version: Debian's kernel for all machines, with modules that the cloud's leaves out. For single tests; much
# larger, and so no part of the matrix.
FULL = "-full"
# What a Debian archive calls its suites, unlike the third parties that may be in apt's settings too.
SUITES = {"stable", "testing", "unstable", "sid", "bullseye", "bookworm", "trixie", "forky"}
CACHE = os.environ.get("CACHETOP_VM_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cachetop", "vm")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class VmError(Exception):
    """Something the user can put right: its text says how."""


def mirror():
    """(URI, signing option) of the machine's own Debian archive, from either format of apt settings."""
    if os.environ.get("CACHETOP_VM_MIRROR"):
        return os.environ["CACHETOP_VM_MIRROR"], ""
    found = []  # (URI, suites, components, Signed-By)
    for path in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        with open(path) as f:
            text = re.sub(r"^#.*\n", "", f.read(), flags=re.M)
        for part in re.split(r"\n\s*\n", text):
            field = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", part, re.M))
            if "deb" in field.get("Types", "").split() and field.get("Enabled", "yes") != "no":
                rest = [field.get(f, "") for f in ("Suites", "Components", "Signed-By")]
                found += [(uri, *rest) for uri in field["URIs"].split()]
    for path in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*.list"))]:
        if os.path.exists(path):
            with open(path) as f:
                lines = re.findall(r"^deb[ \t]+(?:\[(.*?)\][ \t]+)?(\S+)[ \t]+(\S+)[ \t]+(.*)", f.read(), re.M)
            for options, uri, suite, components in lines:
                signed = re.search(r"signed-by=(\S+)", options)
                found.append((uri, suite, components, signed.group(1) if signed else ""))
    for uri, suites, components, signed in found:
        if "main" in components.split() and SUITES & set(suites.split()):
            return uri, signed
    raise VmError("no Debian archive in this machine's apt settings: set CACHETOP_VM_MIRROR to a mirror's URL")


def stanza(suite):
    """A .sources stanza for a suite of that archive."""
    uri, signed = mirror()
    signed = KEYRING if os.path.exists(KEYRING) else signed
    text = f"Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\n"
    return text + (f"Signed-By: {signed}\n" if signed else "")


def apt_options(suite):
    """Options that make apt work on one suite in a directory of its own, signatures checked as always."""
    directory = f"{CACHE}/apt/{suite}"
    for d in ("lists/partial", "cache/archives/partial"):
        os.makedirs(f"{directory}/{d}", exist_ok=True)
    with open(f"{directory}/{suite}.sources", "w") as f:
        f.write(stanza(suite))
    return ["-qq", f"-oDir::Etc::sourcelist={directory}/{suite}.sources", "-oDir::Etc::sourceparts=/dev/null",
            f"-oDir::State::Lists={directory}/lists", f"-oDir::Cache={directory}/cache",
            "-oAPT::Architecture=amd64", "-oAPT::Update::Error-Mode=any", "-oAPT::Sandbox::User=root"]


def output(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def packages(name, options):
    """The packages that make up the newest kernel NAME of a suite."""
    flavour = "-amd64" if name.endswith(FULL) else "-cloud-amd64"
    name = name.removesuffix(FULL)
    natural = lambda s: [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", s)]
    names = output("apt-cache", *options, "pkgnames", f"linux-image-{name}").split()
    names = [n for n in names if re.fullmatch(rf"linux-image-{re.escape(name)}(?!\d)[^-\s]*(?:-\d+)?{flavour}", n)]
    if names:
        image = max(names, key=natural)
    else:  # the suite has moved on
        depends = output("apt-cache", *options, "depends", "linux-image" + flavour)
        image = re.search(r"Depends: (linux-image-\S+)", depends).group(1)
        print(f"vm: NOTE: {KERNELS[name]} no longer carries {name}: taking {image}", flush=True)
    depends = output("apt-cache", *options, "depends", image)
    return [image, *re.findall(r"Depends: (linux-(?:base|binary|modules)-\d\S+)", depends)]


def fetch(name):
    """Downloads and unpacks kernel NAME unless the cache has it."""
    root = f"{CACHE}/root/{name}"
    if os.path.exists(root):
        return
    os.makedirs(f"{CACHE}/root", exist_ok=True)
    suite = KERNELS[name.removesuffix(FULL)]
    print(f"vm: fetching {name} from {suite}", flush=True)
    options = apt_options(suite)
    try:
        with tempfile.TemporaryDirectory(dir=f"{CACHE}/root") as part:
            subprocess.run(["apt-get", *options, "update"], check=True)
            os.makedirs(f"{part}/debs")
            wanted = packages(name, options)
            subprocess.run(["apt-get", *options, "download", *wanted], cwd=f"{part}/debs", check=True)
            for deb in glob.glob(f"{part}/debs/*.deb"):
                subprocess.run(["dpkg-deb", "-x", deb, f"{part}/root"], check=True)
            os.rename(f"{part}/root", root)
    except subprocess.CalledProcessError as e:
        raise VmError(f"cannot fetch {name} from {suite}: {' '.join(e.cmd[:1] + e.cmd[-2:])} failed "
                      "(does the mirror carry that suite? CACHETOP_VM_MIRROR names another)") from e
    print(f"vm: {name} is {' '.join(wanted)}", flush=True)


def kernel_files(name):
    """(image, module directory) of a fetched kernel."""
    root = f"{CACHE}/root/{name}"
    images = glob.glob(f"{root}/boot/vmlinuz*") + glob.glob(f"{root}/usr/lib/modules/*/vmlinuz")
    modules = glob.glob(f"{root}/lib/modules/*") + glob.glob(f"{root}/usr/lib/modules/*")
    if not images or not modules:
        raise VmError(f"{root} holds no kernel: remove it and run `vm fetch {name}`")
    return images[0], modules[0]
