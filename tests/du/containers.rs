//! Containers made by hand: an image below overlay mounts, a root and namespaces of their own, a cgroup by an id.

use std::ffi::CString;
use std::fs as std_fs;
use std::fs::File;
use std::io;
use std::io::Read as _;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::fs::Fs;
use crate::hold::count;
use crate::hold::file_with;
use crate::hold::number;
use crate::hold::program;
use crate::hold::resident;
use crate::layers::Mounted;
use crate::limit::Group;
use crate::sys;

/// A container and what is known of it.
struct Container {
    /// Its first process, as the rest of the machine knows it.
    pid: i32,
    /// The one that made its namespaces.
    maker: i32,
    id: String,
    _group: Group,
}

impl Drop for Container {
    fn drop(&mut self) {
        // SAFETY: no pointers.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        let _ = sys::wait(self.maker);
    }
}

/// Whether a process is the program `name` and sleeps. Not by wchan, which some kernels leave at 0.
fn sleeps(pid: u32, name: impl Fn(&Path) -> bool) -> bool {
    let runs = std_fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| name(&exe));
    let state = std_fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    runs && state.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"))
}

/// Copies a program and the libraries that it maps into an image; their paths below it.
fn install(image: &Path) -> Vec<PathBuf> {
    let mut sleep = Command::new("sleep").arg("100").spawn().unwrap();
    let exe = format!("/proc/{}/exe", sleep.id());
    // Until it is what it is to be, and has its libraries.
    let maps = (0..500)
        .find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let waits = sleeps(sleep.id(), |exe| exe != std::env::current_exe().unwrap());
            let maps = std_fs::read_to_string(format!("/proc/{}/maps", sleep.id())).ok()?;
            (waits && maps.contains("[stack]")).then_some(maps)
        })
        .expect("sleep sleeps");
    let mut paths: Vec<PathBuf> = maps.lines().filter_map(|l| Some(l[l.find('/')?..].into())).collect();
    // What is read in by language is not there in the container.
    paths.retain(|path: &PathBuf| !path.starts_with("/usr/lib/locale"));
    paths.push(std_fs::read_link(&exe).unwrap());
    paths.sort();
    paths.dedup();
    for path in &paths {
        let to = image.join(path.strip_prefix("/").unwrap());
        std_fs::create_dir_all(to.parent().unwrap()).unwrap();
        std_fs::copy(path, &to).unwrap();
    }
    let to = image.join("bin/run");
    std_fs::create_dir_all(image.join("bin")).unwrap();
    std_fs::copy(&exe, &to).unwrap();
    std_fs::set_permissions(&to, PermissionsExt::from_mode(0o755)).unwrap();
    // The interpreter that the program names may be a link to the one that is mapped.
    if let Ok(real) = std_fs::canonicalize("/lib64/ld-linux-x86-64.so.2") {
        let link = image.join("lib64/ld-linux-x86-64.so.2");
        std_fs::create_dir_all(image.join("lib64")).unwrap();
        if !link.exists() {
            std::os::unix::fs::symlink(real, link).unwrap();
        }
    }
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    files(image)
}

/// Regular files below.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in std_fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => out.extend(files(&entry.path())),
            kind if kind.is_file() => out.push(entry.path()),
            _ => {}
        }
    }
    out
}

/// Becomes the first process of a container whose root is `root`, tells its pid, and runs what is in it.
fn enter(root: &Path, group: &Path, tell: &File) -> io::Result<()> {
    let check = |ret: i64| if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    let flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;
    // SAFETY: no pointers but to live, terminated strings.
    unsafe {
        check(libc::unshare(flags).into())?;
        let private = libc::MS_REC | libc::MS_PRIVATE;
        check(
            libc::mount(std::ptr::null(), c"/".as_ptr(), std::ptr::null(), private, std::ptr::null()).into(),
        )?;
    }
    let pid = sys::fork(|| {
        let enter = || {
            std_fs::write(group.join("cgroup.procs"), "0")?;
            // Whoever keeps what this test prints in a file has it open in the container, too.
            let null = File::options().read(true).write(true).open("/dev/null")?;
            // /proc is still that of the machine.
            let own = std_fs::read_link("/proc/self")?;
            (&*tell).write_all(&own.to_str().unwrap_or("").parse::<i32>().unwrap_or(0).to_ne_bytes())?;
            std::env::set_current_dir(root)?;
            // SAFETY: live, terminated strings.
            unsafe {
                match check(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr())) {
                    // The first root of a kernel stays where it is: on top of it then, as engines do it.
                    Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                        let (here, root, none) = (c".".as_ptr(), c"/".as_ptr(), std::ptr::null());
                        check(libc::mount(here, root, none, libc::MS_MOVE, none.cast()).into())?;
                        check(libc::chroot(here).into())?;
                    }
                    done => {
                        done?;
                        check(libc::umount2(c".".as_ptr(), libc::MNT_DETACH).into())?;
                    }
                }
            }
            std::env::set_current_dir("/")?;
            let kept = [File::open("/data/shared")?, File::open("/data/own")?];
            let kept = kept.iter().zip(60..).chain((0..3).map(|own| (&null, own)));
            for (file, at) in kept {
                // SAFETY: two descriptors.
                check(unsafe { libc::dup2(file.as_raw_fd(), at) }.into())?;
            }
            let args = [CString::new("sleep")?, CString::new("1000")?];
            let argv = [args[0].as_ptr(), args[1].as_ptr(), std::ptr::null()];
            // SAFETY: terminated lists of live strings.
            unsafe { libc::execve(c"/bin/run".as_ptr(), argv.as_ptr(), [std::ptr::null()].as_ptr()) };
            Err(io::Error::last_os_error())
        };
        let failed: io::Result<()> = enter();
        eprintln!("container: {failed:?}");
        1
    })?;
    sys::wait(pid)?;
    Ok(())
}

fn container(root: &Path, n: u32) -> Container {
    let id = format!("c0ffee{n:02x}{:056x}", std::process::id());
    let group = Group::new(&format!("docker/{id}"));
    let (mut said, tell) = sys::pipe().unwrap();
    let maker = sys::fork(|| i32::from(enter(root, &group.0, &tell).is_err())).unwrap();
    drop(tell);
    let mut pid = [0; 4];
    said.read_exact(&mut pid).unwrap();
    let pid = i32::from_ne_bytes(pid);
    let runs = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        sleeps(pid.unsigned_abs(), |exe| exe.ends_with("bin/run"))
    });
    assert!(runs, "container {n}");
    Container { pid, maker, id, _group: group }
}

fn ask(args: &[&str]) -> Vec<serde_json::Value> {
    let out = Command::new(program()).arg("--json").args(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// What two containers of one image hold, by what of the image and of their own layers is cached.
pub fn two_containers(fs: Fs, dir: &Path) {
    let mut mounted = Mounted::default();
    for name in ["base", "base/data", "base/proc"] {
        std_fs::create_dir(dir.join(name)).unwrap();
    }
    let base = dir.join("base");
    install(&base);
    let (_shared, _) = file_with(fs, &base.join("data/shared"), 300, &[1, 2, 3, 200]);
    let (_unused, _) = file_with(fs, &base.join("data/unused"), 20, &[4, 5]);
    let roots = ["1", "2"].map(|n| mounted.overlay(dir, n, &["base"]));
    let own = ["1", "2"].map(|n| dir.join(format!("upper{n}/data/own")));
    for (n, root) in roots.iter().enumerate() {
        let _ = file_with(fs, &root.join("data/own"), 40, &[0, 7, 9][..=n]);
    }
    let all = [container(&roots[0], 0xa), container(&roots[1], 0xb)];
    // What each runs and has open is in the image, but for its own file.
    let cached = |paths: &[PathBuf]| -> u64 {
        let pages = |file: &File| file.metadata().unwrap().len().div_ceil(sys::page_size());
        paths
            .iter()
            .map(|path| File::open(path).unwrap())
            .map(|file| count(&resident(&file, pages(&file))))
            .sum()
    };
    let mut image = files(&base);
    let unused = [base.join("data/unused")];
    image.retain(|path| *path != unused[0]);
    // Of several copies of one program, what is not run is not held.
    let held = |pid: i32, path: &Path| {
        let below = Path::new("/").join(path.strip_prefix(&base).unwrap());
        let maps = std_fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        below.starts_with("/data") || maps.lines().any(|line| line.ends_with(below.to_str().unwrap()))
    };
    image.retain(|path| held(all[0].pid, path));
    // The program and the shared file, and the libraries of one that is not static.
    assert!(image.len() >= 2, "{image:?}");
    let (image, each) = (cached(&image), own.each_ref().map(|path| cached(std::slice::from_ref(path))));
    // btrfs reads larger blocks on kernels with large folios.
    assert!(fs == Fs::Btrfs || each == [1, 2], "{each:?}");
    let total = |args: &[&str]| number(ask(args).last().unwrap(), "cached");
    let ids = all.each_ref().map(|c| &c.id[..8]);
    for (id, own) in ids.iter().zip(each) {
        assert_eq!(total(&["--container", id]), image + own, "{:?}", ask(&["--container", id]));
    }
    let truth = image + each[0] + each[1];
    assert_eq!(total(&["--container", &ids.join(",")]), truth);
    let pids = all.each_ref().map(|c| c.pid.to_string());
    assert_eq!(total(&["--pid", &pids.join(",")]), truth);
    // The same from the other side: the roots as the containers have them, and as the machine has.
    let trees = truth + cached(&unused) + {
        let rest: Vec<PathBuf> =
            files(&base).into_iter().filter(|p| *p != unused[0] && !held(all[0].pid, p)).collect();
        cached(&rest)
    };
    let of = |paths: &[String]| {
        let args: Vec<&str> = ["-d", "0"].into_iter().chain(paths.iter().map(String::as_str)).collect();
        let rows = ask(&args);
        let last = rows.last().unwrap();
        (number(last, "cached"), number(last, "perhaps_shared_files"))
    };
    assert_eq!(of(&roots.each_ref().map(|r| r.display().to_string())), (trees, 0));
    assert_eq!(of(&pids.each_ref().map(|pid| format!("/proc/{pid}/root"))), (trees, 0));
}
