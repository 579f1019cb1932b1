#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn where_operands_lie() {
    let top = tempfile::tempdir().unwrap();
    let real = top.path().canonicalize().unwrap();
    for dir in ["a", "b", "a/c", "d"] {
        fs::create_dir(real.join(dir)).unwrap();
    }
    for file in ["a/f", "b/g", "a/m"] {
        fs::write(real.join(file), "").unwrap();
    }
    std::os::unix::fs::symlink("../d", real.join("a/link")).unwrap();
    std::os::unix::fs::symlink("g", real.join("b/link")).unwrap();
    let layers = Layers { bound: HashSet::from([real.join("a/m")]), ..Layers::default() };
    let operands = Operands::default();
    let named = ["a/f", "a/../a/m", "a/link", "b/link", "b/none"].map(|p| real.join(p));
    let mut last = Last::default();
    for path in &named {
        operands.add(path, !path.is_dir() && !path.is_symlink(), &layers, &mut last);
    }
    let operands = operands.near();
    let near = |path: &str| operands.to(&real.join(path));
    assert!(near("") && near("a") && near("a/m") && near("d") && near("d/x") && near("b/g"));
    // Beside what is named, not above it: there may be a server that is gone.
    assert!(!near("a/c") && !near("a/f2") && !near("b/h"));
    let own = std::env::current_dir().unwrap().canonicalize().unwrap();
    let operands = Operands::default();
    operands.add(Path::new("file-of-no-directory"), true, &layers, &mut last);
    let operands = operands.near();
    assert!(operands.to(&own) && !operands.to(&own.join("src")));
}

#[test]
fn directories_between_colons() {
    let all = |text| split(Path::new(text)).map(|dir| dir.to_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(all("/a:/b"), ["/a", "/b"]);
    assert_eq!(all(r"/a\:b:/c\\d"), ["/a:b", r"/c\d"]);
    assert_eq!(all(""), [""; 0]);
    assert_eq!(all("/a\\"), ["/a"]);
}

#[test]
fn what_options_say_of_layers() {
    let top = tempfile::tempdir().unwrap();
    let top = top.path().canonicalize().unwrap();
    for name in ["l/one", "l/two", "id/diff", "a,b c"] {
        fs::create_dir_all(top.join(name)).unwrap();
    }
    let top = top.to_str().unwrap();
    let of = |options: &str| {
        let found = layers(&options.replace('@', top), &mut HashMap::new());
        found.iter().map(|l| l.to_str().unwrap().replace(top, "@")).collect::<Vec<_>>()
    };
    assert_eq!(
        of("rw,lowerdir=@/l/one:@/l/two,upperdir=@/id/diff,workdir=@/id/work"),
        ["@/id/diff", "@/l/one", "@/l/two"]
    );
    // As engines of containers write it, and as the kernel does since 6.5.
    assert_eq!(of("lowerdir=l/one:l/two,upperdir=@/id/diff"), ["@/id/diff", "@/l/one", "@/l/two"]);
    assert_eq!(of("ro,lowerdir+=@/l/one,lowerdir+=@/l/two"), ["@/l/one", "@/l/two"]);
    assert_eq!(of(r"ro,lowerdir=@/a\054b\040c:@/l/one"), ["@/a,b c", "@/l/one"]);
    // One of them is not to be found here, or data may be in another than the name.
    assert_eq!(of("ro,lowerdir=@/l/one:@/gone"), [""; 0]);
    assert_eq!(of("ro,lowerdir=l/one"), [""; 0]);
    assert_eq!(of("rw,lowerdir=@/l/one,upperdir=@/id/diff,metacopy=on"), [""; 0]);
    assert_eq!(of("ro,lowerdir+=@/l/one,datadir+=@/l/two"), [""; 0]);
    assert_eq!(of("ro,lowerdir=@/l/one::@/l/two"), [""; 0]);
}

#[test]
fn where_a_directory_lies_in_an_overlay() {
    let text = "1 0 0:9 / / rw - ext4 /dev/a rw\n\
                2 1 0:40 / /m rw - overlay overlay rw,lowerdir=/proc/self,upperdir=/proc/self\n\
                3 1 0:40 /in /m/in/other rw - overlay overlay rw,lowerdir=/proc/self\n\
                a line that says nothing\n";
    let layers = Layers::parse(text);
    let below = |path| layers.at(40, Path::new(path)).map(|p| p.below.to_str().unwrap().to_owned());
    assert_eq!(below("/m").as_deref(), Some(""));
    assert_eq!(below("/m/x/y").as_deref(), Some("x/y"));
    assert_eq!(below("/m/in/other/z").as_deref(), Some("in/z"), "the mount that says most");
    assert_eq!((below("/n"), layers.at(9, Path::new("/m")).is_some()), (None, false));
    assert!(!layers.shared() && layers.overlaid(40) && !layers.overlaid(9));
}
