//! What happens in the kernel and is counted or followed.

macro_rules! events {
    ($( $name:ident = $text:literal; )*) => {
        /// Something that a hook sees.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Event { $( #[doc = $text] $name, )* }

        impl Event {
            /// All events.
            pub const ALL: &[Event] = &[ $( Event::$name, )* ];
            /// What it is called, for people.
            #[must_use]
            pub const fn text(self) -> &'static str { match self { $( Event::$name => $text, )* } }
        }
    };
}

events! {
    PageAdded = "page added";
    PageDeleted = "page deleted";
    PageDirtied = "page dirtied";
    PageBack = "page added again";
    RefaultOf = "page read back in, of whom";
    WaitOf = "wait for a page that came back";
    WaitOfEnded = "wait for a page that came back ended";
    MemoryTaken = "memory taken, by whom";
    KswapdWoken = "kswapd woken, by whom";
    RequestMade = "read request made";
    BufferDirtied = "buffer dirtied";
    ThreadNamed = "thread gets a name";
    ThreadUser = "thread gets a user";
    ThreadCgroup = "thread gets a cgroup";
    ThreadExits = "thread exits";
    ThreadGone = "thread gone";
    ThreadBegins = "thread begins";
    ProcessMade = "process made";
    ProcessGone = "process gone";
    ThreadEnds = "thread ends";
    ThreadWaits = "thread waits";
    WriterPaused = "writer paused";
    NameAnswered = "name answered";
    NameLookedUp = "name looked up";
    CgroupMade = "cgroup made";
    Read = "read request";
    ReadEnded = "read request ended";
    ReadCut = "read cut short by a bad buffer";
    ReadMisses = "read that misses";
    ReadAheadDue = "read-ahead due";
    UringRequest = "io_uring request";
    Splice = "splice";
    SpliceEnded = "splice ended";
    TmpfsRead = "tmpfs read";
    TmpfsReadEnded = "tmpfs read ended";
    TmpfsSplice = "tmpfs splice";
    TmpfsSpliceEnded = "tmpfs splice ended";
    InFlight = "wait for a page in flight";
    BlockFound = "block looked up";
    BlockAhead = "block read ahead";
    TreeFound = "block of a tree found";
    TreeMade = "block of a tree made";
    TreeRead = "block of a tree read";
    TreeAhead = "block of a tree read ahead";
    Window = "read-ahead window";
    WindowEnded = "read-ahead window ended";
    WindowLarge = "read-ahead window, large folios";
    WindowLargeEnded = "read-ahead window, large folios, ended";
    Fault = "fault";
    FaultEnded = "fault ended";
    TmpfsFault = "tmpfs fault";
    TmpfsFaultEnded = "tmpfs fault ended";
    MappedAround = "pages mapped around a fault";
    MappedAroundEnded = "pages mapped around a fault, ended";
    PagesMapped = "pages mapped";
    HugeMapped = "huge page mapped";
    ReadBack = "page read back in";
    Write = "write";
    WriteEnded = "write ended";
    WriteIomap = "write by iomap";
    WriteIomapEnded = "write by iomap, ended";
    WriteBtrfs = "write of btrfs";
    WriteBtrfsEnded = "write of btrfs, ended";
    TmpfsAdded = "page added to tmpfs";
    DeviceDirect = "direct I/O of a device";
    DeviceDirectEnded = "direct I/O of a device, ended";
    DirectSubmitted = "direct request submitted";
    DirectQueued = "direct request queued";
    DirectEnded = "direct I/O, ended";
    DirectShortEnded = "direct read, short";
    DirectBuffersEnded = "direct I/O by buffers, ended";
}
