//! Values of options that are one of a few: their names are known where the type is, what the help says of them here.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::du;
use crate::options::OneOf;
use crate::pivot::By;
use crate::report::Cold;
use crate::text::numbers::Unit;
use crate::top;

macro_rules! values {
    ($($type:ty { $($value:ident: $about:literal,)+ })+) => {$(
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                Self::ALL
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let about = match self {
                    $(Self::$value => $about,)+
                };
                Some(PossibleValue::new(OneOf::name(*self)).help(about))
            }
        }
    )+};
}

values! {
    Unit {
        Pages: "Pages of this machine: 4 KiB on x86",
        Bytes: "With K, M, G in text, plain numbers in CSV",
    }
    By {
        Process: "Processes, the threads of each taken together",
        Thread: "Threads",
        Comm: "Command names: all processes of one name",
        User: "Users",
        Cgroup: "Control groups, with the container, pod or unit that the path tells",
        File: "Files",
        Mount: "Mounted file systems",
        Device: "Devices",
        Evictor: "Who pushes pages out of the cache, and whose",
    }
    Cold {
        Pagecache: "Pages of files (drop_caches 1)",
        Slab: "Names and inodes (drop_caches 2)",
        All: "Both (drop_caches 3)",
    }
    crate::live::snapshot::Show {
        Count: "Counts in the last interval",
        Rate: "The same per second",
        Total: "Counts since counting began",
    }
    top::options::Color {
        Auto: "Where the terminal has them and NO_COLOR is not set",
        Always: "Always",
        Never: "Never",
    }
    du::row::Sort {
        Cached: "Cached pages",
        Size: "Size on disk",
        Percent: "Cached part of the pages",
        Dirty: "Pages to be written",
        Files: "Number of files",
        Name: "The path, from A to Z",
    }
}
