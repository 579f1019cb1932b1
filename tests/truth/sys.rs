//! The system calls that std does not offer, each behind a safe function.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr;

/// `sysconf(_SC_PAGESIZE)`.
pub fn page_size() -> u64 {
    // SAFETY: sysconf takes no pointer.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).expect("page size")
}

fn done(ret: libc::c_long) -> io::Result<usize> {
    usize::try_from(ret).map_err(|_| io::Error::last_os_error())
}

/// A mapping of a file that nobody touches: it only gives mincore something to look through.
pub struct Map {
    base: *mut libc::c_void,
    pages: usize,
}

impl Map {
    /// Maps `pages` pages from the start of the file; the file may be shorter.
    pub fn new(file: &File, pages: usize) -> io::Result<Self> {
        Self::with(file, pages, libc::PROT_READ, libc::MAP_SHARED)
    }

    /// The same, with protection and flags of the caller's.
    pub fn with(file: &File, pages: usize, prot: i32, flags: i32) -> io::Result<Self> {
        let len = pages * page_size() as usize;
        // SAFETY: a fresh mapping chosen by the kernel.
        let base = unsafe { libc::mmap(ptr::null_mut(), len, prot, flags, file.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping just made. khugepaged would read in what it finds missing from one like this.
        unsafe { libc::madvise(base, len, libc::MADV_NOHUGEPAGE) };
        Ok(Self { base, pages })
    }

    /// A readable one that huge pages can be made of: at an address that one may have.
    pub fn huge(file: &File, pages: usize) -> io::Result<Self> {
        const HUGE: usize = 2 << 20;
        let len = pages * page_size() as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping chosen by the kernel, in which the file's then takes the place of a part; the rest stays, empty.
        let base = unsafe {
            let all = libc::mmap(ptr::null_mut(), len + HUGE, libc::PROT_NONE, flags, -1, 0);
            if all == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let at = all.byte_add(all.addr().next_multiple_of(HUGE) - all.addr());
            libc::mmap(at, len, libc::PROT_READ, libc::MAP_SHARED | libc::MAP_FIXED, file.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { base, pages }) }
    }

    /// Which pages are in the cache and up to date.
    pub fn resident(&self) -> Vec<bool> {
        let mut bits = vec![0u8; self.pages];
        // SAFETY: `bits` has one byte for each page of the mapping.
        let ret = unsafe { libc::mincore(self.base, self.pages * page_size() as usize, bits.as_mut_ptr()) };
        assert_eq!(ret, 0, "mincore: {}", io::Error::last_os_error());
        bits.into_iter().map(|b| b & 1 == 1).collect()
    }

    /// Touches a page by reading a byte of it (a fault, not a read call).
    pub fn touch(&self, page: usize) -> u8 {
        assert!(page < self.pages);
        // SAFETY: inside the mapping; the caller picks a page inside the file.
        unsafe { ptr::read_volatile(self.base.cast::<u8>().add(page * page_size() as usize)) }
    }

    /// Stores a byte in a page of a writable mapping.
    pub fn store(&self, page: usize) {
        assert!(page < self.pages);
        // SAFETY: inside the mapping; the caller mapped it writable and picks a page inside the file.
        unsafe { ptr::write_volatile(self.base.cast::<u8>().add(page * page_size() as usize), 0x5a) }
    }

    /// madvise on the whole mapping.
    pub fn advise(&self, advice: i32) -> io::Result<()> {
        let len = self.pages * page_size() as usize;
        // SAFETY: exactly what was mapped.
        done(unsafe { libc::madvise(self.base, len, advice) }.into()).map(|_| ())
    }

    /// mlock: brings all pages in and maps them.
    pub fn lock(&self) -> io::Result<()> {
        // SAFETY: exactly what was mapped.
        done(unsafe { libc::mlock(self.base, self.pages * page_size() as usize) }.into()).map(|_| ())
    }

    /// Which pages have an entry in the page table (a touch of the others is a fault).
    pub fn mapped(&self) -> io::Result<Vec<bool>> {
        let mut words = vec![0u8; self.pages * 8];
        let at = self.base as u64 / page_size() * 8;
        File::open("/proc/self/pagemap")?.read_exact_at(&mut words, at)?;
        Ok(words.chunks_exact(8).map(|w| w[7] >> 7 == 1).collect())
    }

    /// The address of a page.
    pub fn address(&self, page: usize) -> usize {
        self.base as usize + page * page_size() as usize
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped.
        unsafe { libc::munmap(self.base, self.pages * page_size() as usize) };
    }
}

/// Stores a byte in each of the given pages of a shared, writable mapping.
pub fn mmap_store(file: &File, pages: usize, which: &[usize]) -> io::Result<()> {
    let len = pages * page_size() as usize;
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping; every store is inside it and inside the file.
    unsafe {
        let base = libc::mmap(ptr::null_mut(), len, prot, libc::MAP_SHARED, file.as_raw_fd(), 0);
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        for page in which {
            assert!(*page < pages);
            ptr::write_volatile(base.cast::<u8>().add(page * page_size() as usize), 0x5a);
        }
        libc::munmap(base, len);
    }
    Ok(())
}

/// A buffer of `good` readable bytes followed by a page that may not be written.
pub fn fenced(good: usize) -> io::Result<(*mut u8, impl FnOnce())> {
    let page = page_size() as usize;
    let len = good.next_multiple_of(page) + page;
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh anonymous mapping, unmapped by the closure only.
    unsafe {
        let base = libc::mmap(ptr::null_mut(), len, prot, flags, -1, 0);
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = base.cast::<u8>();
        ptr::write_bytes(base, 0, len - page);
        libc::mprotect(base.add(len - page).cast(), page, libc::PROT_NONE);
        Ok((base.add(len - page - good), move || {
            libc::munmap(base.cast(), len);
        }))
    }
}

/// pread to an address that may fault.
pub fn pread_raw(file: &File, to: *mut u8, len: usize, pos: u64) -> io::Result<usize> {
    // SAFETY: the kernel checks the address and returns a short count or EFAULT.
    done(unsafe { libc::syscall(libc::SYS_pread64, file.as_raw_fd(), to, len, pos) })
}

/// pwrite from an address that may fault.
pub fn pwrite_raw(file: &File, from: *const u8, len: usize, pos: u64) -> io::Result<usize> {
    // SAFETY: the kernel checks the address and returns a short count or EFAULT.
    done(unsafe { libc::syscall(libc::SYS_pwrite64, file.as_raw_fd(), from, len, pos) })
}

/// No file may grow beyond this from now on; a write that would is cut short.
pub fn limit_file_size(len: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: len, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a live struct; ignoring a signal needs no handler.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        done(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit).into()).map(|_| ())
    }
}

/// One asynchronous read or write by io_submit, waited for: what it moved.
pub fn aio(file: &File, buf: &mut [u8], pos: u64, write: bool) -> io::Result<usize> {
    let mut context = 0u64;
    let mut iocb = [0u64; 8];
    iocb[2] = u64::from(write) | (file.as_raw_fd() as u64) << 32; // aio_lio_opcode, aio_fildes
    (iocb[3], iocb[4], iocb[5]) = (buf.as_mut_ptr() as u64, buf.len() as u64, pos);
    let list = [iocb.as_ptr()];
    let mut event = [0u64; 4];
    // SAFETY: the control block, the list and the event have the kernel's layout and outlive the request, which is
    // waited for; so does the buffer.
    unsafe {
        done(libc::syscall(libc::SYS_io_setup, 1, &raw mut context))?;
        let result = done(libc::syscall(libc::SYS_io_submit, context, 1, list.as_ptr()))
            .and_then(|_| done(libc::syscall(libc::SYS_io_getevents, context, 1, 1, event.as_mut_ptr(), 0)));
        libc::syscall(libc::SYS_io_destroy, context);
        result?;
    }
    let moved = event[2] as i64;
    usize::try_from(moved).map_err(|_| io::Error::from_raw_os_error(-moved as i32))
}

/// preadv2 with flags, into several buffers.
pub fn preadv2(file: &File, bufs: &mut [&mut [u8]], pos: u64, flags: i32) -> io::Result<usize> {
    let iov: Vec<libc::iovec> =
        bufs.iter_mut().map(|b| libc::iovec { iov_base: b.as_mut_ptr().cast(), iov_len: b.len() }).collect();
    // SAFETY: the vectors describe live, exclusive buffers.
    done(unsafe {
        libc::syscall(libc::SYS_preadv2, file.as_raw_fd(), iov.as_ptr(), iov.len(), pos, 0, flags)
    })
}

/// A write of several buffers.
pub fn pwritev(file: &File, bufs: &[&[u8]], pos: u64) -> io::Result<usize> {
    let iov: Vec<libc::iovec> = bufs
        .iter()
        .map(|b| libc::iovec { iov_base: b.as_ptr().cast_mut().cast(), iov_len: b.len() })
        .collect();
    // SAFETY: the vectors describe live buffers, which are only read.
    done(unsafe { libc::syscall(libc::SYS_pwritev, file.as_raw_fd(), iov.as_ptr(), iov.len(), pos, 0) })
}

/// sendfile from `pos`.
pub fn sendfile(to: &impl AsRawFd, from: &File, pos: u64, len: usize) -> io::Result<usize> {
    let mut off = pos;
    // SAFETY: the offset is a live u64.
    done(unsafe { libc::syscall(libc::SYS_sendfile, to.as_raw_fd(), from.as_raw_fd(), &raw mut off, len) })
}

/// splice from a file at `pos` into a pipe.
pub fn splice(from: &File, pos: u64, to: &impl AsRawFd, len: usize) -> io::Result<usize> {
    let mut off = pos;
    // SAFETY: the offset is a live u64.
    done(unsafe {
        let none = ptr::null_mut::<u64>();
        libc::syscall(libc::SYS_splice, from.as_raw_fd(), &raw mut off, to.as_raw_fd(), none, len, 0)
    })
}

/// copy_file_range, the same offset in both files.
pub fn copy_file_range(from: &File, to: &File, pos: u64, len: usize) -> io::Result<usize> {
    let (mut a, mut b) = (pos, pos);
    // SAFETY: both offsets are live u64.
    done(unsafe {
        let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
        libc::syscall(libc::SYS_copy_file_range, from, &raw mut a, to, &raw mut b, len, 0)
    })
}

/// posix_fadvise.
pub fn advise(file: &File, pos: u64, len: u64, advice: i32) -> io::Result<()> {
    // SAFETY: no pointer.
    let ret = unsafe { libc::posix_fadvise(file.as_raw_fd(), pos as i64, len as i64, advice) };
    if ret == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(ret)) }
}

/// readahead(2).
pub fn readahead(file: &File, pos: u64, len: usize) -> io::Result<()> {
    // SAFETY: no pointer.
    done(unsafe { libc::syscall(libc::SYS_readahead, file.as_raw_fd(), pos, len) }).map(|_| ())
}

/// cachestat(2): pages of the file in the cache, those still being read included.
pub fn cachestat(file: &File, len: u64) -> io::Result<u64> {
    cachestat_range(file, 0, len)
}

/// The same for a part of the file.
pub fn cachestat_range(file: &File, pos: u64, len: u64) -> io::Result<u64> {
    let range = [pos, len];
    let mut out = [0u64; 5];
    // SAFETY: two live arrays of the sizes that the kernel expects (16 and 40 bytes).
    done(unsafe { libc::syscall(451, file.as_raw_fd(), range.as_ptr(), out.as_mut_ptr(), 0) })?;
    Ok(out[0])
}

/// A pipe: (read end, write end).
pub fn pipe() -> io::Result<(File, File)> {
    let mut fds = [0; 2];
    // SAFETY: two ints for two descriptors, which are owned from here on.
    unsafe {
        if libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((File::from_raw_fd(fds[0]), File::from_raw_fd(fds[1])))
    }
}

/// Forks `work`; the child leaves with its result as status and runs nothing else.
pub fn fork(work: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: the caller has a single thread, so the child may allocate; it ends in _exit.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => libc::_exit(work()),
            pid => Ok(pid),
        }
    }
}

/// Waits for a child and returns its exit status.
pub fn wait(pid: i32) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: a live int.
    if unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if libc::WIFEXITED(status) { Ok(libc::WEXITSTATUS(status)) } else { Ok(128) }
}

/// A counter of /proc/vmstat.
pub fn vmstat(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let line = text.lines().filter_map(|l| l.split_once(' ')).find(|(k, _)| *k == key);
    line.and_then(|(_, v)| v.parse().ok()).unwrap_or(0)
}

/// Faults of the calling thread so far: minor and major.
pub fn faults() -> (u64, u64) {
    // SAFETY: an all-zero rusage is valid and the kernel fills it.
    unsafe {
        let mut out: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut out);
        (out.ru_minflt as u64, out.ru_majflt as u64)
    }
}

/// Names the calling thread.
pub fn set_comm(name: &str) {
    let name = CString::new(name).expect("no zero byte");
    // SAFETY: a live, terminated string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Faults in everything that is mapped now, so that the workload takes no fault of its own, and dies with
/// its parent.
pub fn settle_process() {
    // SAFETY: no pointers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::mlockall(libc::MCL_CURRENT);
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no zero byte")
}

/// mount(2).
pub fn mount(source: &Path, target: &Path, kind: &str, options: &str) -> io::Result<()> {
    let (source, target) = (c_path(source), c_path(target));
    let (kind, options) = (CString::new(kind)?, CString::new(options)?);
    // SAFETY: live, terminated strings.
    let ret =
        unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) };
    if ret == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// umount2(2); lazily if it must be.
pub fn unmount(target: &Path) {
    let target = c_path(target);
    // SAFETY: a live, terminated string.
    unsafe {
        if libc::umount2(target.as_ptr(), 0) != 0 {
            libc::umount2(target.as_ptr(), libc::MNT_DETACH);
        }
    }
}

/// Has the kernel check what is read of a file, that nobody has open to write, against hashes (SHA-256, blocks of 4 KiB).
pub fn enable_verity(file: &File) -> io::Result<()> {
    let mut arg = [0u32; 32]; // struct fsverity_enable_arg: version, hash_algorithm, block_size
    arg[..3].copy_from_slice(&[1, 1, 4096]);
    // SAFETY: FS_IOC_ENABLE_VERITY reads the 128 bytes, which name neither a salt nor a signature.
    done(unsafe { libc::ioctl(file.as_raw_fd(), 0x4080_6685, arg.as_ptr()) }.into()).map(drop)
}

/// The magic number of the file system that holds a path.
pub fn fs_magic(path: &Path) -> io::Result<u64> {
    let path = c_path(path);
    // SAFETY: an all-zero statfs is valid and the kernel fills it.
    unsafe {
        let mut out: libc::statfs = std::mem::zeroed();
        if libc::statfs(path.as_ptr(), &raw mut out) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(out.f_type as u64 & 0xffff_ffff)
    }
}

/// Attaches a file to a free loop device that lets go when it is last closed; returns the device, open.
pub fn loop_attach(image: &File) -> io::Result<(std::path::PathBuf, File)> {
    let control = File::options().read(true).write(true).open("/dev/loop-control")?;
    for _ in 0..16 {
        // SAFETY: LOOP_CTL_GET_FREE takes no argument.
        let n = done(unsafe { libc::ioctl(control.as_raw_fd(), 0x4C82) }.into())?;
        let path = std::path::PathBuf::from(format!("/dev/loop{n}"));
        let dev = File::options().read(true).write(true).open(&path)?;
        // SAFETY: LOOP_SET_FD takes a descriptor; LOOP_SET_STATUS64 a 232-byte struct.
        unsafe {
            if libc::ioctl(dev.as_raw_fd(), 0x4C00, image.as_raw_fd()) != 0 {
                continue;
            }
            let mut info = [0u8; 232];
            info[52..56].copy_from_slice(&4u32.to_ne_bytes()); // lo_flags = LO_FLAGS_AUTOCLEAR
            libc::ioctl(dev.as_raw_fd(), 0x4C04, info.as_mut_ptr());
        }
        return Ok((path, dev));
    }
    Err(io::Error::other("no free loop device"))
}
