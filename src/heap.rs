//! The allocator, told to keep little of what is free: whoever watches for months must not hold what loading took for a
//! moment, nor what the busiest minute did.

/// One heap for all threads, and large pieces always from the kernel, whom they are given back to when they are free. By
/// default glibc gives each thread a heap of its own, and takes large pieces from there, too, once it has seen one be freed.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    // SAFETY: plain numbers; called before other threads are started.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 * 1024);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 256 * 1024);
    }
}

/// Hands free memory back to the kernel: loading takes several copies of the kernel's BTF, 5 MiB each and more, which the
/// allocator would keep.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no preconditions; it takes the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Lets go of the constants and the code of this executable, which come back from the file when they are used: the programs'
/// object stands among the constants and is read once, and what reads the command line and asks the kernel what it can is
/// not used again.
pub(crate) fn drop_pages_of_file() {
    // Of the mappings that these are in, nothing was ever written: what the loader relocates is elsewhere.
    static HERE: &str = "a constant";
    let code: fn() = drop_pages_of_file;
    let places = [("r--p ", HERE.as_ptr() as usize), ("r-xp ", code as usize)];
    let maps = crate::procfs::text("/proc/self/maps").unwrap_or_default();
    for (flags, here) in places {
        let Some((start, end)) = maps.lines().find_map(|line| mapping(line, flags, here)) else { continue };
        // SAFETY: private pages of a file, never written: they are read again from it. Where it fails, they stay.
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED);
        }
    }
}

/// The mapping of this line of `/proc/PID/maps`, if it has these flags, is of a file, and has this address.
fn mapping(line: &str, flags: &str, address: usize) -> Option<(usize, usize)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    (rest.starts_with(flags) && rest.contains('/') && (start..end).contains(&address)).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_written_and_is_of_a_file() {
        let line =
            |flags: &str, path: &str| format!("55d0c0000000-55d0c0100000 {flags} 00000000 fe:00 42   {path}");
        let at = 0x55d0_c000_1000;
        let constants = |line: &str, at| mapping(line, "r--p ", at);
        let whole = Some((0x55d0_c000_0000, 0x55d0_c010_0000));
        assert_eq!(constants(&line("r--p", "/usr/bin/x"), at), whole);
        assert_eq!(constants(&line("rw-p", "/usr/bin/x"), at), None);
        assert_eq!(constants(&line("r-xp", "/usr/bin/x"), at), None);
        assert_eq!(mapping(&line("r-xp", "/usr/bin/x"), "r-xp ", at), whole);
        assert_eq!(constants(&line("r--p", ""), at), None);
        assert_eq!(constants(&line("r--p", "/usr/bin/x"), at + (1 << 20)), None);
        assert_eq!(constants("rubbish", at), None);
    }

    #[test]
    fn constants_and_code_are_there_afterwards() {
        let text = String::from("a long text that stands among the constants");
        drop_pages_of_file();
        assert_eq!(text, "a long text that stands among the constants");
    }
}
