//! Just enough io_uring, by raw system calls, to read and write files.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

/// Always handed to a worker thread.
pub const ASYNC: u8 = 1 << 4;
const OP_READ: u8 = 22;
const OP_WRITE: u8 = 23;
const ENTER_GETEVENTS: u32 = 1;
const OFF_SQ: i64 = 0;
const OFF_CQ: i64 = 0x800_0000;
const OFF_SQES: i64 = 0x1000_0000;

#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    resv: [u32; 3],
    /// head, tail, ring_mask, ring_entries, flags, dropped, array, resv1, user_addr (2)
    sq: [u32; 10],
    /// head, tail, ring_mask, ring_entries, overflow, cqes, flags, resv1, user_addr (2)
    cq: [u32; 10],
}

#[repr(C)]
#[derive(Default)]
struct Sqe {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    fd: i32,
    off: u64,
    addr: u64,
    len: u32,
    rw_flags: u32,
    user_data: u64,
    rest: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Cqe {
    user_data: u64,
    res: i32,
    flags: u32,
}

/// A ring of a few entries.
pub struct Ring {
    /// Sleeps until requests are done, and does not wait for them in `io_uring_enter`.
    pub sleeps: bool,
    fd: File,
    params: Params,
    sq: *mut u8,
    cq: *mut u8,
    sqes: *mut Sqe,
}

impl Ring {
    /// Sets up a ring; the kernel may refuse.
    pub fn new(entries: u32) -> io::Result<Self> {
        let mut params = Params::default();
        // SAFETY: `params` has the layout of struct io_uring_params and lives through the call.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &raw mut params) };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: a fresh descriptor that nobody else owns.
        let fd = unsafe { File::from_raw_fd(fd) };
        let map = |len: usize, offset: i64| {
            let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
            // SAFETY: a fresh mapping of the ring, as large as the kernel said.
            let p = unsafe { libc::mmap(ptr::null_mut(), len, prot, flags, fd.as_raw_fd(), offset) };
            if p == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(p.cast::<u8>()) }
        };
        let sq = map(params.sq[6] as usize + params.sq_entries as usize * 4, OFF_SQ)?;
        let cq = map(params.cq[5] as usize + params.cq_entries as usize * size_of::<Cqe>(), OFF_CQ)?;
        let sqes = map(params.sq_entries as usize * size_of::<Sqe>(), OFF_SQES)?.cast();
        Ok(Self { sleeps: false, fd, params, sq, cq, sqes })
    }

    fn word(&self, base: *mut u8, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel placed an aligned u32 at this offset of the mapping, which lives as long as self.
        unsafe { &*base.add(offset as usize).cast::<AtomicU32>() }
    }

    /// Submits reads of `bufs` at their offsets together and waits for all; results in order.
    pub fn read(&mut self, file: &File, reads: &mut [(&mut [u8], u64)], flags: u8) -> io::Result<Vec<i32>> {
        self.run(OP_READ, file, reads, flags)
    }

    /// Submits one write and waits for it.
    pub fn write(&mut self, file: &File, buf: &mut [u8], pos: u64, flags: u8) -> io::Result<i32> {
        Ok(self.run(OP_WRITE, file, &mut [(buf, pos)], flags)?[0])
    }

    fn run(
        &mut self,
        opcode: u8,
        file: &File,
        reads: &mut [(&mut [u8], u64)],
        flags: u8,
    ) -> io::Result<Vec<i32>> {
        let n = u32::try_from(reads.len()).map_err(io::Error::other)?;
        assert!(n <= self.params.sq_entries);
        let tail = self.word(self.sq, self.params.sq[1]);
        let mask = self.word(self.sq, self.params.sq[2]).load(Ordering::Relaxed);
        let start = tail.load(Ordering::Relaxed);
        for (i, (buf, off)) in reads.iter_mut().enumerate() {
            let slot = (start + i as u32) & mask;
            let sqe = Sqe {
                opcode,
                flags,
                fd: file.as_raw_fd(),
                off: *off,
                addr: buf.as_mut_ptr() as u64,
                len: buf.len() as u32,
                user_data: i as u64,
                ..Sqe::default()
            };
            // SAFETY: the slot is inside the array and not owned by the kernel until the tail moves.
            unsafe { self.sqes.add(slot as usize).write(sqe) };
            self.word(self.sq, self.params.sq[6] + slot * 4).store(slot, Ordering::Relaxed);
        }
        tail.store(start + n, Ordering::Release);
        let mut results = vec![i32::MIN; reads.len()];
        let (mut submit, mut left) = (n, n);
        while left > 0 {
            let (fd, none) = (self.fd.as_raw_fd(), ptr::null::<u8>());
            let (wait, how) = if self.sleeps { (0, 0) } else { (left, ENTER_GETEVENTS) };
            let enter = !self.sleeps || submit > 0;
            if !enter {
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
            let ret = if enter {
                // SAFETY: the buffers of the reads outlive the wait; no signal mask.
                unsafe { libc::syscall(libc::SYS_io_uring_enter, fd, submit, wait, how, none, 0) }
            } else {
                0
            };
            if ret < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            submit -= submit.min(ret as u32);
            let head = self.word(self.cq, self.params.cq[0]);
            let end = self.word(self.cq, self.params.cq[1]).load(Ordering::Acquire);
            let mask = self.word(self.cq, self.params.cq[2]).load(Ordering::Relaxed);
            let mut at = head.load(Ordering::Relaxed);
            while at != end {
                // SAFETY: the kernel filled this slot before it moved the tail past it.
                let cqe = unsafe {
                    *self.cq.add(self.params.cq[5] as usize).cast::<Cqe>().add((at & mask) as usize)
                };
                results[cqe.user_data as usize] = cqe.res;
                at += 1;
                left -= 1;
            }
            head.store(at, Ordering::Release);
        }
        Ok(results)
    }
}
