//! Whether reclaim of a cgroup goes by what is, or by what was gathered before.

/// From this release on ("memcg: use ratelimited stats flush in the reclaim").
const LATE: (u32, u32) = (6, 12);

/// Whether reclaim has the statistics of its cgroup gathered before it decides what to take. No type and no symbol tells: the
/// number does, and is wrong where a distribution has taken that change into an older kernel.
#[must_use]
pub fn reclaim_gathers_statistics() -> bool {
    gathers(&rustix::system::uname().release().to_string_lossy())
}

fn gathers(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < LATE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_tells() {
        assert!(["5.10.0-33-amd64", "6.1.192", "6.1+", "6.11.99-rt"].iter().all(|release| gathers(release)));
        assert!(
            ["6.12", "6.12+deb13-amd64", "6.18.44-fc-v595", "7.2-rc1"]
                .iter()
                .all(|release| !gathers(release))
        );
        // What cannot be read is like the newest.
        assert!(["", "x", "6", "99999999999.1", ".6.1"].iter().all(|release| !gathers(release)));
    }
}
