//! Read calls that do not come back until they are let: their buffers are memory that is missing (userfaultfd).

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::fd::FromRawFd as _;

use super::tools::*;

const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_ZEROPAGE: libc::c_ulong = 0xc020_aa04;

/// Makes a request of three or four words.
fn tell(uffd: &File, request: libc::c_ulong, words: &mut [u64]) {
    // SAFETY: each of the requests above reads and writes as many words as its callers pass.
    let ret = unsafe { libc::ioctl(uffd.as_raw_fd(), request, words.as_mut_ptr()) };
    assert_eq!(ret, 0, "{}", io::Error::last_os_error());
}

/// So many threads each read so many pages of the file, and stand still in the middle while something is done.
pub fn in_the_middle_of_a_read(path: &str, threads: u64, pages: u64, meanwhile: impl FnOnce()) {
    let page = page_size();
    let each = pages * page;
    let len = usize::try_from(threads * each).unwrap();
    let file = File::open(path).unwrap();
    advise(&file, libc::POSIX_FADV_RANDOM);
    // SAFETY: no pointers; the descriptor is ours alone. Then a fresh mapping, which stays for as long as the process.
    let (mut uffd, base) = unsafe {
        let fd = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC);
        assert!(fd >= 0, "userfaultfd: {}", io::Error::last_os_error());
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let base = libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0);
        assert_ne!(base, libc::MAP_FAILED);
        (File::from_raw_fd(i32::try_from(fd).unwrap()), base as usize as u64)
    };
    tell(&uffd, UFFDIO_API, &mut [0xaa, 0, 0]);
    tell(&uffd, UFFDIO_REGISTER, &mut [base, len as u64, 1, 0]);
    std::thread::scope(|scope| {
        for n in 0..threads {
            let file = &file;
            scope.spawn(move || {
                let (to, at) = ((base + n * each) as *mut libc::c_void, i64::try_from(n * each).unwrap());
                // SAFETY: a part of the mapping that no other thread touches.
                let got = unsafe { libc::pread(file.as_raw_fd(), to, usize::try_from(each).unwrap(), at) };
                assert!(got > 0, "{}", io::Error::last_os_error());
            });
        }
        // Each call tells us that it stands still, with the address that it waits for; and again if it was woken in between.
        let mut stuck = BTreeSet::new();
        while stuck.len() < usize::try_from(threads).unwrap() {
            let mut message = [0; 32];
            uffd.read_exact(&mut message).unwrap();
            let at = u64::from_ne_bytes(message[16..24].try_into().unwrap());
            stuck.insert(base + (at - base) / each * each);
        }
        meanwhile();
        stuck.iter().for_each(|at| tell(&uffd, UFFDIO_ZEROPAGE, &mut [*at, each, 0, 0]));
    });
}
