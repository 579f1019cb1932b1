//! Control groups: which hierarchy counts memory.

/// Whether a line of `/proc/self/mountinfo` is the memory controller's hierarchy of version 1.
#[must_use]
pub fn is_memory_v1(line: &str) -> bool {
    let Some((_, tail)) = line.split_once(" - ") else { return false };
    let mut words = tail.split(' ');
    words.next() == Some("cgroup") && words.last().is_some_and(|o| o.split(',').any(|o| o == "memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_memory_hierarchy_counts() {
        let v1 = "37 26 0:32 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory";
        assert!(is_memory_v1(v1));
        assert!(!is_memory_v1("36 26 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct"));
        assert!(!is_memory_v1("35 26 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,memory_recursiveprot"));
        assert!(!is_memory_v1(""));
    }
}
