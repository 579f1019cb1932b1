//! Processes that read when told to.

use std::ffi::CString;
use std::fs;
use std::fs::File;
use std::io;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;

use super::files::*;
use super::json::Reads;
use super::wait_for;

/// The other side of [`Reader`]: one command a line, a word and a path; `ok` when it is done.
pub fn child(mut act: impl FnMut(&str, &str)) {
    let mut lines = io::stdin().lines();
    println!("ok");
    while let Some(Ok(line)) = lines.next() {
        let (word, path) = line.split_once(' ').unwrap_or((&line, ""));
        act(word, path);
        println!("ok");
    }
}

/// What every reader can do.
pub fn act(word: &str, path: &str) {
    match word {
        // Nothing is read ahead: every page is asked for before it is there.
        "random" => read_whole(path, Some(libc::POSIX_FADV_RANDOM)),
        "read" => read_whole(path, None),
        "dontneed" => advise(&File::open(path).unwrap(), libc::POSIX_FADV_DONTNEED),
        // Until the file has no name any more.
        "churn" => {
            let (file, mut buffer) = (File::open(path).unwrap(), vec![0; 64 << 10]);
            while Path::new(path).exists() {
                file.read_exact_at(&mut buffer, 0).unwrap();
                advise(&file, libc::POSIX_FADV_DONTNEED);
            }
        }
        "name" => {
            let name = CString::new(path).unwrap();
            // SAFETY: a string that ends.
            assert_eq!(unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) }, 0);
        }
        "willneed" => {
            let file = File::open(path).unwrap();
            advise(&file, libc::POSIX_FADV_WILLNEED);
            wait_for("read-ahead", || resident(&file) == pages_of(Path::new(path)));
        }
        "exec" => panic!("{}", Command::new(path).arg("--child").exec()),
        _ => panic!("what is {word} {path}?"),
    }
}

pub fn read_whole(path: &str, advice: Option<i32>) {
    let file = File::open(path).unwrap();
    advice.inspect(|a| advise(&file, *a));
    let size = file.metadata().unwrap().len();
    let mut buffer = vec![0; 4 * usize::try_from(page_size()).unwrap()];
    let mut at = 0;
    while at < size {
        at += file.read_at(&mut buffer, at).unwrap() as u64;
    }
}

pub struct Reader {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Reader {
    /// Starts it. What starting takes is over when this returns: from then on it reads what it is told, only.
    pub fn start(program: &Path) -> Self {
        let mut process = Command::new(program)
            .arg("--child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = process.stdin.take().unwrap();
        let from = BufReader::new(process.stdout.take().unwrap());
        let mut reader = Self { process, to, from };
        reader.answered();
        reader
    }

    pub fn new() -> Self {
        Self::start(&std::env::current_exe().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn answered(&mut self) {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        assert_eq!(line, "ok\n", "the reader has failed");
    }

    /// Tells it to begin; [`Reader::answered`] waits for the end.
    pub fn send(&mut self, what: &str, path: &Path) {
        writeln!(self.to, "{what} {}", path.display()).unwrap();
    }

    pub fn tell(&mut self, what: &str, path: &Path) {
        self.send(what, path);
        self.answered();
    }

    /// Ends it and waits for that.
    pub fn end(self) {
        let Self { mut process, to, .. } = self;
        drop(to);
        assert!(process.wait().unwrap().success());
    }
}

/// A process of one purpose: takes a name, reads the first pages of a file once `gate` is closed, and is gone.
/// It is forked and not executed, since executing reads files.
pub fn fork_reader(name: &str, file: &File, pages: u64, gate: Option<&[i32; 2]>) -> i32 {
    fork_reader_as(name, None, file, pages, gate)
}

/// The same, of another user from then on.
pub fn fork_reader_as(
    name: &str,
    user: Option<u32>,
    file: &File,
    pages: u64,
    gate: Option<&[i32; 2]>,
) -> i32 {
    let name = CString::new(name).unwrap();
    let mut buffer = vec![0u8; usize::try_from(pages * page_size()).unwrap()];
    // SAFETY: the child makes nothing but system calls, on memory made ready before it was forked.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0, "{}", io::Error::last_os_error());
        if pid == 0 {
            libc::prctl(libc::PR_SET_NAME, name.as_ptr());
            if let Some(uid) = user {
                libc::syscall(libc::SYS_setresuid, uid, uid, uid);
            }
            if let Some([read, write]) = gate {
                libc::close(*write);
                let mut byte = 0u8;
                libc::read(*read, (&raw mut byte).cast(), 1);
            }
            let got = libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0);
            libc::_exit(i32::from(usize::try_from(got) != Ok(buffer.len())));
        }
        pid
    }
}

pub fn reap(pid: i32) {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(ExitStatus::from_raw(status).success(), "reader {pid}: {status}");
}

/// Three files of different, odd sizes, one for each outcome of an access.
pub struct Work {
    files: [PathBuf; 2],
    pub want: Reads,
}

impl Work {
    pub fn new(dir: &Path) -> Self {
        let missed = cold_file(&dir.join("missed"), 41);
        let ahead = cold_file(&dir.join("ahead"), 23);
        let (m, a) = (pages_of(&missed), pages_of(&ahead));
        assert_eq!((m, a), (41, 23));
        let bytes: [u64; 2] = [&missed, &ahead].map(|f| fs::metadata(f).unwrap().len());
        // The first is read cold and twice warm, the second once, when read-ahead has fetched all of it.
        Self { files: [missed, ahead], want: [3 * m + a, 2 * m, a, m, 3 * bytes[0] + bytes[1]] }
    }

    /// Some of it now and the rest when `pause` returns.
    pub fn run(&self, reader: &mut Reader, pause: impl FnOnce()) {
        let [missed, ahead] = &self.files;
        reader.tell("random", missed);
        reader.tell("read", missed);
        assert_eq!(resident(&File::open(missed).unwrap()), pages_of(missed), "something empties the cache");
        pause();
        reader.tell("read", missed);
        reader.tell("willneed", ahead);
        reader.tell("read", ahead);
    }
}
