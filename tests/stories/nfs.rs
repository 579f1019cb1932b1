//! The kernel's NFS server and client on one machine, without `mountd`: what it would say is written by hand.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::sys;

/// A directory seen through NFS; gone when dropped.
pub struct Mount {
    pub target: PathBuf,
}

impl Mount {
    pub fn new(served: &Path) -> Self {
        let target = served.with_extension("nfs");
        fs::create_dir_all(&target).unwrap();
        fs::create_dir_all("/var/lib/nfs/v4recovery").unwrap();
        sys::mount("nfsd".as_ref(), "/proc/fs/nfsd".as_ref(), "nfsd", "").unwrap();
        let tell = |path: &str, text: &str| fs::write(path, text);
        tell("/proc/fs/nfsd/versions", "-2 -3 +4\n")
            .or_else(|_| tell("/proc/fs/nfsd/versions", "-3 +4\n"))
            .unwrap();
        tell("/proc/fs/nfsd/portlist", "tcp 2049\n").unwrap();
        // Nobody may open a file until clients of before could have come back; some kernels do not let that be ended.
        for time in ["nfsv4leasetime", "nfsv4gracetime"] {
            let _ = tell(&format!("/proc/fs/nfsd/{time}"), "10\n");
        }
        tell("/proc/fs/nfsd/threads", "2\n").unwrap();
        let _ = tell("/proc/fs/nfsd/v4_end_grace", "Y\n");
        const FOREVER: u32 = 0x7fff_ffff;
        // Read and write, any port, root is root, no checks of parents, named by number 0: the root of NFSv4.
        const FLAGS: u32 = 0x2 | 0x400 | 0x2000;
        let dir = served.display();
        tell("/proc/net/rpc/auth.unix.ip/channel", &format!("nfsd 127.0.0.1 {FOREVER} s\n")).unwrap();
        tell("/proc/net/rpc/nfsd.export/channel", &format!("s {dir} {FOREVER} {FLAGS} 65534 65534 0\n"))
            .unwrap();
        tell("/proc/net/rpc/nfsd.fh/channel", &format!("s 1 \\x00000000 {FOREVER} {dir}\n")).unwrap();
        let options =
            "vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,sec=sys,proto=tcp,port=2049,timeo=100,retrans=1";
        // A server that has only just begun may not answer the first call, which is not sent again until it is given up.
        let mount = || sys::mount("127.0.0.1:/".as_ref(), &target, "nfs4", options);
        (0..5).find_map(|_| mount().ok()).unwrap_or_else(|| mount().unwrap());
        Self { target }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        sys::unmount(&self.target);
        let _ = fs::write("/proc/fs/nfsd/threads", "0\n");
        sys::unmount("/proc/fs/nfsd".as_ref());
    }
}
