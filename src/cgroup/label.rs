//! What the path of a cgroup tells: which container, which pod, which unit.

/// What the path of a cgroup tells.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Label {
    /// The container, pod or virtual machine: `docker:0123456789ab`, `pod:UID/containerd:0123456789ab`, `lxc:NAME`.
    pub container: Option<String>,
    /// The innermost systemd service or scope.
    pub unit: Option<String>,
}

impl Label {
    /// The shorter name of the two: the container's, else the unit's.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.container.as_deref().or(self.unit.as_deref())
    }
}

/// Names of scopes and directories that begin with the runtime's name, and what people call it.
const RUNTIMES: &[(&str, &str)] = &[
    ("docker-", "docker"),
    ("cri-containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("crio-conmon-", "crio-conmon"),
    ("crio-", "crio"),
    ("libpod-conmon-", "podman-conmon"),
    ("libpod-", "podman"),
    ("buildkit-", "buildkit"),
];

/// Directories whose children are containers by id.
const PARENTS: &[(&str, &str)] =
    &[("docker", "docker"), ("libpod_parent", "podman"), ("buildkit", "buildkit"), ("ecs", "ecs")];

/// Reads a path.
#[must_use]
pub fn label(path: &str) -> Label {
    let mut out = Label::default();
    let (mut pod, mut container): (Option<String>, Option<String>) = (None, None);
    let mut parent = "";
    for part in path.split('/').filter(|p| !p.is_empty()) {
        if let Some(uid) = pod_uid(part) {
            pod = Some(uid);
        } else if let Some(name) = container_of(parent, part, pod.is_some()) {
            container = Some(name);
        }
        if part.ends_with(".service") || part.ends_with(".scope") {
            out.unit = Some(unescape(part));
        }
        parent = part;
    }
    out.container = match (pod, container) {
        (Some(pod), Some(container)) => Some(format!("pod:{pod}/{container}")),
        (Some(pod), None) => Some(format!("pod:{pod}")),
        (None, container) => container,
    };
    out
}

fn container_of(parent: &str, part: &str, in_pod: bool) -> Option<String> {
    let bare = part.strip_suffix(".scope").unwrap_or(part);
    for (prefix, runtime) in RUNTIMES {
        if let Some(id) = bare.strip_prefix(prefix).and_then(short) {
            return Some(format!("{runtime}:{id}"));
        }
    }
    if let Some(name) = part.strip_prefix("lxc.payload.").or_else(|| part.strip_prefix("lxc-")) {
        return Some(format!("lxc:{name}"));
    }
    match parent {
        "lxc" | "lxc.payload" => return Some(format!("lxc:{part}")),
        "machine.slice" | "machine" => {
            if let Some(name) = bare.strip_prefix("machine-") {
                return Some(format!("machine:{}", unescape(name)));
            }
            let nspawn = part.strip_prefix("systemd-nspawn@").and_then(|p| p.strip_suffix(".service"));
            if let Some(name) = nspawn {
                return Some(format!("machine:{}", unescape(name)));
            }
        }
        _ => {}
    }
    // cgroupfs drivers: the id alone, below a directory that says whose.
    let id = short(bare)?;
    // With the systemd driver, containerd writes SLICE:PREFIX:ID where the driver was not told to use slices.
    match PARENTS.iter().find(|(name, _)| *name == parent) {
        Some((_, runtime)) => Some(format!("{runtime}:{id}")),
        None if in_pod => Some(format!("container:{id}")),
        None => Some(format!("container:{id}")),
    }
}

/// The first twelve digits of an id of 64, as `docker ps` shows it; also after the last colon or dash of a name.
fn short(id: &str) -> Option<&str> {
    let id = id.rsplit(':').next().unwrap_or(id);
    (id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| &id[..12])
}

/// `kubepods-burstable-pod0a1b_….slice` and `pod0a1b-…`: the pod's uid.
fn pod_uid(part: &str) -> Option<String> {
    let uid = match part.strip_suffix(".slice") {
        Some(slice) => slice.strip_prefix("kubepods").and_then(|s| s.rsplit_once("-pod"))?.1,
        None => part.strip_prefix("pod")?,
    };
    let uid = uid.replace('_', "-");
    let digits = uid.bytes().filter(u8::is_ascii_hexdigit).count();
    let plain = uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    // A uid has 32 digits; static pods have a hash of 32 without dashes.
    (digits == 32 && plain).then_some(uid)
}

/// systemd writes special characters of names as `\x2d`.
fn unescape(name: &str) -> String {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, tail @ ..] = rest {
        if let [b'\\', b'x', a, b, after @ ..] = rest {
            let code = std::str::from_utf8(&[*a, *b]).ok().and_then(|h| u8::from_str_radix(h, 16).ok());
            if let Some(code) = code {
                out.push(code);
                rest = after;
                continue;
            }
        }
        out.push(*first);
        rest = tail;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4b01c2ef8f3dba6bb25dd8afcd9e2f05f0ef0f4e2a8b0e5c4b1f5f7a60e1d2c3";

    #[track_caller]
    fn is(path: &str, container: Option<&str>, unit: Option<&str>) {
        let path = path.replace("ID", ID);
        let unit = unit.map(|u| u.replace("ID", ID));
        assert_eq!(label(&path), Label { container: container.map(String::from), unit }, "{path}");
    }

    #[test]
    fn containers_of_all_runtimes() {
        let docker = Some("docker:4b01c2ef8f3d");
        is("/system.slice/docker-ID.scope", docker, Some("docker-ID.scope"));
        is("/docker/ID", docker, None);
        is("/docker/ID/init.scope", docker, Some("init.scope"));
        is(
            "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
            Some("podman:4b01c2ef8f3d"),
            Some("libpod-ID.scope"),
        );
        is("/machine.slice/libpod-ID.scope", Some("podman:4b01c2ef8f3d"), Some("libpod-ID.scope"));
        is(
            "/machine.slice/libpod-conmon-ID.scope",
            Some("podman-conmon:4b01c2ef8f3d"),
            Some("libpod-conmon-ID.scope"),
        );
        is("/libpod_parent/libpod-ID", Some("podman:4b01c2ef8f3d"), None);
        is("/system.slice/nerdctl-ID.scope", Some("containerd:4b01c2ef8f3d"), Some("nerdctl-ID.scope"));
        is("/ecs/0123abcd/ID", Some("container:4b01c2ef8f3d"), None);
        is("/lxc.payload.web1/system.slice/nginx.service", Some("lxc:web1"), Some("nginx.service"));
        is("/lxc/web1", Some("lxc:web1"), None);
        is("/lxc.payload/web1", Some("lxc:web1"), None);
        is(
            r"/machine.slice/machine-qemu\x2d1\x2dvm.scope/libvirt",
            Some("machine:qemu-1-vm"),
            Some("machine-qemu-1-vm.scope"),
        );
        is(
            "/machine.slice/systemd-nspawn@deb.service/payload",
            Some("machine:deb"),
            Some("systemd-nspawn@deb.service"),
        );
    }

    #[test]
    fn pods_have_a_uid() {
        let uid = "3f1c2a9e-8d1b-4c5e-9f00-1234567890ab";
        is(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod3f1c2a9e_8d1b_4c5e_9f00_1234567890ab.slice/cri-containerd-ID.scope",
            Some(&format!("pod:{uid}/containerd:4b01c2ef8f3d")),
            Some("cri-containerd-ID.scope"),
        );
        is(
            "/kubepods.slice/kubepods-pod3f1c2a9e_8d1b_4c5e_9f00_1234567890ab.slice/crio-ID.scope",
            Some(&format!("pod:{uid}/crio:4b01c2ef8f3d")),
            Some("crio-ID.scope"),
        );
        is(
            "/kubepods/besteffort/pod3f1c2a9e-8d1b-4c5e-9f00-1234567890ab/ID",
            Some(&format!("pod:{uid}/container:4b01c2ef8f3d")),
            None,
        );
        is(
            "/kubepods/burstable/pod3f1c2a9e8d1b4c5e9f001234567890ab",
            Some("pod:3f1c2a9e8d1b4c5e9f001234567890ab"),
            None,
        );
        // The systemd driver's name given to the cgroupfs driver.
        is(
            "/system.slice/containerd.service/kubepods-besteffort-pod3f1c2a9e_8d1b_4c5e_9f00_1234567890ab.slice:cri-containerd:ID",
            Some("container:4b01c2ef8f3d"),
            Some("containerd.service"),
        );
    }

    #[test]
    fn units_and_nothing() {
        is("/system.slice/nginx.service", None, Some("nginx.service"));
        is("/user.slice/user-1000.slice/session-3.scope", None, Some("session-3.scope"));
        is(
            "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox.scope",
            None,
            Some("app-firefox.scope"),
        );
        is(r"/system.slice/system-getty.slice/getty@tty1.service", None, Some("getty@tty1.service"));
        is("/", None, None);
        is("/system.slice", None, None);
        is("/podcast", None, None);
        is("/docker/short", None, None);
        is("cgroup:42 (gone)", None, None);
        is(r"/a\x/b\xzz.service", None, Some(r"b\xzz.service"));
    }
}
