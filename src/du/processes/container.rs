//! Containers by what people call them. The kernel knows cgroups only: their paths have the ids of most runtimes, and the
//! names of some; Docker and Podman keep the names that belong to ids in files.

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::cgroup::label;
use crate::exit::Failure;
use crate::procfs;
use crate::text::foreign::Foreign;

/// Where Docker keeps a directory for each container, and Podman a list of them.
const DOCKER: &str = "/var/lib/docker/containers";
const PODMAN: &str = "/var/lib/containers/storage/overlay-containers/containers.json";
/// Bytes of such a file that are read.
const LONGEST: u64 = 16 << 20;
/// Hexadecimal digits of an id that are taken for one.
const LEAST: usize = 4;

/// The processes of these in the containers of these names or ids.
///
/// # Errors
/// Wrong usage: none, or more than one, has such a name.
pub(super) fn members(wanted: &[String], pids: &[u32]) -> Result<Vec<u32>, Failure> {
    let of = |pid: u32| container(&procfs::text(format!("/proc/{pid}/cgroup")).unwrap_or_default());
    let found: Vec<_> = pids.iter().filter_map(|pid| Some((*pid, of(*pid)?))).collect();
    let mut members = Vec::new();
    for wanted in wanted {
        let ids = named(Path::new(DOCKER), Path::new(PODMAN), wanted);
        members.extend(one(wanted, &ids, &found)?);
    }
    members.sort_unstable();
    members.dedup();
    Ok(members)
}

/// Those of one container.
fn one(wanted: &str, ids: &[String], found: &[(u32, String)]) -> Result<Vec<u32>, Failure> {
    let pod = |name: &str| name.split_once('/').is_some_and(|(pod, _)| pod == wanted) || name == wanted;
    let is = |name: &str| pod(name) || called(name, wanted, ids);
    let names: BTreeSet<&str> = found.iter().map(|(_, name)| &**name).filter(|name| is(name)).collect();
    let shown = Foreign::from(wanted);
    let Some(first) = names.first() else {
        return Err(Failure::usage(format!("no process is in a container that is called {shown}"))
            .remedy("name it by its id, or take the process of it that is outside: --pid, --cgroup"));
    };
    if names.len() > 1 && !names.iter().all(|name| pod(name)) {
        let some: Vec<_> = names.iter().take(5).map(|n| Foreign::from(*n).to_string()).collect();
        return Err(Failure::usage(format!(
            "{} containers are called {shown}: {}",
            names.len(),
            some.join(", ")
        ))
        .remedy(format!("name one of them as it stands there, as {}", Foreign::from(*first))));
    }
    Ok(found.iter().filter(|(_, name)| is(name)).map(|(pid, _)| *pid).collect())
}

/// The container of a process, by its cgroups.
fn container(cgroups: &str) -> Option<String> {
    let paths = cgroups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    // What watches a container for Podman is none.
    paths.filter_map(|path| label(path).container).find(|name| !name.contains("-conmon:"))
}

/// Whether a container, as its cgroup tells it, is called so: as a whole, without its runtime, by the beginning of its
/// id, or by a name that belongs to that.
fn called(name: &str, wanted: &str, ids: &[String]) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    let id = last.split_once(':').map_or(last, |(_, id)| id);
    let hex = |text: &str| text.len() >= LEAST && text.bytes().all(|b| b.is_ascii_hexdigit());
    // Of an id of 64 digits, the cgroup's label has twelve.
    let by_id = |wanted: &str| hex(wanted) && hex(id) && (id.starts_with(wanted) || wanted.starts_with(id));
    last == wanted || id == wanted || by_id(wanted) || ids.iter().any(|wanted| by_id(wanted))
}

/// The ids that have this name with Docker and Podman. What cannot be read knows none.
fn named(docker: &Path, podman: &Path, wanted: &str) -> Vec<String> {
    let dirs = fs::read_dir(docker).into_iter().flatten().flatten();
    let mut ids: Vec<String> = dirs
        .filter_map(|dir| {
            let config = json(&dir.path().join("config.v2.json"))?;
            let name = config["Name"].as_str()?;
            (name.strip_prefix('/').unwrap_or(name) == wanted)
                .then(|| config["ID"].as_str().map(str::to_owned))?
        })
        .collect();
    let list = json(podman).unwrap_or_default();
    ids.extend(list.as_array().into_iter().flatten().filter_map(|one| {
        let names = one["names"].as_array()?;
        names.iter().any(|name| name == wanted).then(|| one["id"].as_str().map(str::to_owned))?
    }));
    ids
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_reader(File::open(path).ok()?.take(LONGEST)).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const ID: &str = "4b01c2ef8f3d6a1b4b01c2ef8f3d6a1b4b01c2ef8f3d6a1b4b01c2ef8f3d6a1b";

    fn found(list: &[(u32, &str)]) -> Vec<(u32, String)> {
        list.iter().map(|(pid, name)| (*pid, (*name).to_owned())).collect()
    }

    #[test]
    fn by_name_and_by_id() {
        let all = || {
            found(&[
                (1, "docker:4b01c2ef8f3d"),
                (2, "docker:4b01c2ef8f3d"),
                (3, "lxc:web"),
                (4, "pod:77/containerd:aaaabbbbcccc"),
                (5, "pod:77/containerd:aaaadddd0000"),
                (6, "machine:web"),
            ])
        };
        let pids = |wanted: &str| one(wanted, &[], &all()).map_err(|e| e.message);
        for wanted in ["4b01", "4b01c2ef8f3d", ID, "docker:4b01c2ef8f3d"] {
            assert_eq!(pids(wanted), Ok(vec![1, 2]), "{wanted}");
        }
        assert_eq!(pids("lxc:web"), Ok(vec![3]));
        assert_eq!(pids("aaaab"), Ok(vec![4]));
        assert_eq!(pids("pod:77"), Ok(vec![4, 5]), "all of a pod");
        for (wanted, why) in
            [("web", "2 containers"), ("aaaa", "2 containers"), ("4b0", "no process"), ("", "no")]
        {
            let text = pids(wanted).unwrap_err();
            assert!(text.contains(why), "{wanted}: {text}");
        }
        assert_eq!(one("shop", &[ID.into()], &all()).ok(), Some(vec![1, 2]));
        let text = pids("\x1b[2J").unwrap_err();
        assert!(!text.contains('\x1b'), "{text}");
    }

    #[test]
    fn names_that_runtimes_keep() {
        let dir = tempfile::tempdir().unwrap();
        let docker = dir.path().join("containers");
        for (id, name) in [(ID, "/shop"), ("ffff", "/other")] {
            fs::create_dir_all(docker.join(id)).unwrap();
            let config = serde_json::json!({"ID":id,"Name":name});
            fs::write(docker.join(id).join("config.v2.json"), config.to_string()).unwrap();
        }
        fs::create_dir(docker.join("damaged")).unwrap();
        fs::write(docker.join("damaged/config.v2.json"), "{").unwrap();
        let podman = dir.path().join("containers.json");
        fs::write(&podman, r#"[{"id":"abcd1234","names":["shop","s"]},{"id":"x"},7]"#).unwrap();
        assert_eq!(named(&docker, &podman, "shop"), [ID, "abcd1234"]);
        assert_eq!(named(&docker, Path::new("/none"), "other"), ["ffff"]);
        assert!(named(Path::new("/none"), &docker, "shop").is_empty());
    }

    #[test]
    fn what_watches_a_container_is_none() {
        let scope = format!("0::/machine.slice/libpod-{ID}.scope/container\n");
        assert_eq!(container(&scope).as_deref(), Some("podman:4b01c2ef8f3d"));
        assert_eq!(container(&format!("0::/machine.slice/libpod-conmon-{ID}.scope\n")), None);
        let v1 = format!("11:memory:/docker/{ID}\n10:cpu:/docker/{ID}\n0::/system.slice/x.service\n");
        assert_eq!(container(&v1).as_deref(), Some("docker:4b01c2ef8f3d"));
        assert_eq!(container("0::/user.slice\n"), None);
    }
}
