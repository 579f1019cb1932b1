//! Labels of series: names that others chose, as they may be shown.

use crate::cgroup::Cgroup;
use crate::text::foreign::Foreign;

/// The labels of a series, as they are written.
pub(super) type Labels = Vec<(&'static str, String)>;

/// A name that others chose, as a label shows it.
pub(super) fn label(name: &str) -> String {
    Foreign::from(name).cell()
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
