//! Names that are left out of a walk.

use std::ffi::OsStr;
use std::path::Path;
use std::path::PathBuf;

use globset::Glob;
use globset::GlobBuilder;
use globset::GlobSet;
use globset::GlobSetBuilder;

/// Patterns without a slash match names; those that begin with `/`, `./` or `../` one place; others the path or its
/// end.
#[derive(Debug, Clone, Default)]
pub struct Exclude {
    names: GlobSet,
    ends: GlobSet,
    places: GlobSet,
}

impl Exclude {
    /// Whether nothing is to be left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.ends.is_empty() && self.places.is_empty()
    }

    /// Reads patterns as the shell would write them.
    ///
    /// # Errors
    /// For a pattern that is none, that matches nothing or everything.
    pub fn new(patterns: &[String]) -> Result<Self, String> {
        let builders = || (GlobSetBuilder::new(), GlobSetBuilder::new(), GlobSetBuilder::new());
        let (mut names, mut ends, mut places) = builders();
        // As the shell has it: '*' stays within a directory, '**' does not.
        let glob = |pattern: &str| {
            GlobBuilder::new(pattern).literal_separator(true).build().map_err(|e| e.to_string())
        };
        for pattern in patterns {
            match kind(pattern)? {
                Kind::Name(name) => names.add(Glob::new(&name).map_err(|e| e.to_string())?),
                Kind::End(end) => ends.add(glob(&end)?).add(glob(&format!("**/{end}"))?),
                Kind::Place(place) => places.add(glob(&place)?),
            };
        }
        let build = |set: GlobSetBuilder| set.build().map_err(|e| e.to_string());
        Ok(Self { names: build(names)?, ends: build(ends)?, places: build(places)? })
    }

    /// Whether a name is left out.
    #[must_use]
    pub fn name(&self, name: &OsStr) -> bool {
        !self.names.is_empty() && self.names.is_match(name)
    }

    /// Whether there are patterns that need a path.
    #[must_use]
    pub fn has_paths(&self) -> bool {
        !(self.ends.is_empty() && self.places.is_empty())
    }

    /// Under which absolute paths an operand may be meant, if patterns name any: as it is written, and as it is.
    #[must_use]
    pub fn places(&self, operand: &Path) -> Vec<PathBuf> {
        if self.places.is_empty() {
            return Vec::new();
        }
        let mut places: Vec<_> =
            std::path::absolute(operand).into_iter().chain(operand.canonicalize()).collect();
        places.dedup();
        places
    }

    /// Whether a path is left out: as it is shown, or under one of its absolute paths.
    #[must_use]
    pub fn path(&self, shown: &Path, mut places: impl Iterator<Item = PathBuf>) -> bool {
        self.ends.is_match(shown) || !self.places.is_empty() && places.any(|p| self.places.is_match(p))
    }

    /// Whether a file with an absolute path is left out, or a directory above it.
    #[must_use]
    pub fn within(&self, path: &Path) -> bool {
        let out = |p: &Path| p.file_name().is_some_and(|name| self.name(name));
        path.ancestors().any(|p| out(p) || self.path(p, std::iter::once(p.to_path_buf())))
    }
}

/// What a pattern is about.
enum Kind {
    Name(String),
    End(String),
    Place(String),
}

fn kind(pattern: &str) -> Result<Kind, String> {
    let mut words: Vec<_> = pattern.split('/').filter(|w| !w.is_empty() && *w != ".").collect();
    if words.is_empty() {
        return Err(format!("'{pattern}' would leave out everything"));
    }
    let mut above = if pattern.starts_with('/') {
        Some(PathBuf::new())
    } else if pattern.starts_with("./") || words[0] == ".." {
        Some(std::env::current_dir().map_err(|e| format!("'{pattern}': no current directory: {e}"))?)
    } else {
        None
    };
    while let (Some(above), Some(&"..")) = (&mut above, words.first()) {
        above.pop();
        words.remove(0);
    }
    if words.is_empty() {
        return Err(format!("'{pattern}' would leave out everything"));
    }
    if words.contains(&"..") {
        return Err(format!("'{pattern}' matches nothing: write it without '..'"));
    }
    let rest = words.join("/");
    Ok(match above {
        Some(above) => {
            // What the directory is called is no pattern.
            let above = above.to_str().ok_or("the current directory is not UTF-8: write '/...'")?;
            Kind::Place(format!("{}/{rest}", globset::escape(above.trim_end_matches('/'))))
        }
        None if pattern.trim_end_matches('/').contains('/') => Kind::End(rest),
        None => Kind::Name(rest),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    fn exclude(patterns: &[&str]) -> Exclude {
        Exclude::new(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    /// As a walk of the current directory asks.
    fn out(e: &Exclude, path: &str) -> bool {
        let path = Path::new(path);
        e.path(path, std::path::absolute(path).into_iter())
    }

    #[test]
    fn names_and_paths() {
        let e = exclude(&["*.o", "target/", "a/b*", "/x/*/y"]);
        assert!(e.name(OsStr::new("z.o")) && e.name(OsStr::new("target")) && !e.name(OsStr::new("z.c")));
        assert!(e.name(OsStr::from_bytes(b"\xff.o")), "names need not be UTF-8");
        for (path, left_out) in [
            ("a/bc", true),
            ("q/a/b", true),
            ("/x/1/y", true),
            ("q/x/1/y", false),
            ("a/x/bc", false),
            ("/x/1/2/y", false),
        ] {
            assert_eq!(out(&e, path), left_out, "{path}");
        }
        for (path, out) in [("/q/z.o", true), ("/target/q", true), ("/q/a/b/c", true), ("/q/c", false)] {
            assert_eq!(e.within(Path::new(path)), out, "{path}");
        }
        assert!(!Exclude::default().has_paths() && !Exclude::default().name(OsStr::new("a")));
    }

    #[test]
    fn one_place() {
        let here = std::env::current_dir().unwrap();
        let absolute = format!("{}/a", here.display());
        for pattern in ["./a", ".//./a/", &absolute] {
            let e = exclude(&[pattern]);
            for (path, left_out) in [("a", true), ("./a", true), ("b/a", false), ("a/b", false)] {
                assert_eq!(out(&e, path), left_out, "{pattern} {path}");
            }
            assert!(e.within(Path::new(&format!("{absolute}/b"))), "{pattern}");
            assert!(!e.name(OsStr::new("a")));
        }
        let beside = here.parent().unwrap().join("x");
        assert!(out(&exclude(&["../x"]), beside.to_str().unwrap()));
        // A directory by way of a symbolic link has two places.
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/usr", &link).unwrap();
        for pattern in [&format!("{}/a", link.display()), "/usr/a"] {
            let e = exclude(&[pattern]);
            let places = e.places(&link).into_iter().map(|p| p.join("a"));
            assert!(e.path(Path::new("link/a"), places), "{pattern}");
        }
    }

    #[test]
    fn what_is_no_pattern() {
        for pattern in ["[", "/", ".", "./", "..", "a/../b", "", "{a"] {
            assert!(Exclude::new(&[pattern.into()]).is_err(), "{pattern}");
        }
    }
}
