//! Labels of series: names that others chose, as they may be shown.

use crate::cgroup::Cgroup;
use crate::text::foreign;

/// The labels of a series, as they are written.
pub(super) type Labels = Vec<(&'static str, String)>;

/// A name that others chose, as a label has it: as it is, so that it is what other exporters call it, but for what acts on a
/// terminal. Names that look the same by that are one series.
pub(super) fn label(name: &str) -> String {
    foreign::line(name).into_owned()
}

/// The labels of a cgroup: its path, and the container and the pod where that tells.
pub(super) fn of_cgroup(group: &Cgroup) -> Labels {
    let mut labels = vec![("cgroup", label(&group.path))];
    let container = group.label.container.as_deref().unwrap_or_default();
    let (pod, container) = match container.strip_prefix("pod:") {
        Some(of_pod) => of_pod.split_once('/').unwrap_or((of_pod, "")),
        None => ("", container),
    };
    for (key, name) in [("container", container), ("pod", pod)] {
        if !name.is_empty() {
            labels.push((key, label(name)));
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn a_name_is_what_it_is_elsewhere() {
        // As systemd names what has a dash in it.
        assert_eq!(
            label(r"/system.slice/dev-disk-by\x2duuid-1.swap"),
            r"/system.slice/dev-disk-by\x2duuid-1.swap"
        );
        assert_eq!(label("-x=1"), "-x=1");
        assert_eq!(label("/a\x1b[2J\n\u{202e}"), r"/a\x1b[2J\n\u{202e}");
    }
}
