//! Names that are left out of a walk.

use std::ffi::OsStr;
use std::path::Path;

use globset::Glob;
use globset::GlobBuilder;
use globset::GlobSet;
use globset::GlobSetBuilder;

/// Patterns without a slash match names, others the path or its end.
#[derive(Debug, Clone, Default)]
pub struct Exclude {
    names: GlobSet,
    paths: GlobSet,
}

impl Exclude {
    /// Reads patterns as the shell would write them.
    ///
    /// # Errors
    /// For a pattern that is none.
    pub fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        // As the shell has it: '*' stays within a directory, '**' does not.
        let glob = |pattern: &str| GlobBuilder::new(pattern).literal_separator(true).build();
        for pattern in patterns {
            let pattern = pattern.trim_end_matches('/');
            if pattern.contains('/') {
                paths.add(glob(pattern)?);
                if !pattern.starts_with('/') {
                    paths.add(glob(&format!("**/{pattern}"))?);
                }
            } else {
                names.add(Glob::new(pattern)?);
            }
        }
        Ok(Self { names: names.build()?, paths: paths.build()? })
    }

    /// Whether a name is left out.
    #[must_use]
    pub fn name(&self, name: &OsStr) -> bool {
        !self.names.is_empty() && self.names.is_match(name)
    }

    /// Whether there are patterns that need a path.
    #[must_use]
    pub fn has_paths(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Whether a path is left out.
    #[must_use]
    pub fn path(&self, path: &Path) -> bool {
        self.paths.is_match(path)
    }

    /// Whether a file is left out, or a directory above it.
    #[must_use]
    pub fn within(&self, path: &Path) -> bool {
        path.ancestors().any(|p| p.file_name().is_some_and(|name| self.name(name)) || self.path(p))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn names_and_paths() {
        let e = Exclude::new(&["*.o".into(), "target/".into(), "a/b*".into(), "/x/*/y".into()]).unwrap();
        assert!(e.name(OsStr::new("z.o")) && e.name(OsStr::new("target")) && !e.name(OsStr::new("z.c")));
        assert!(e.name(OsStr::from_bytes(b"\xff.o")), "names need not be UTF-8");
        for (path, out) in [
            ("a/bc", true),
            ("q/a/b", true),
            ("/x/1/y", true),
            ("q/x/1/y", false),
            ("a/x/bc", false),
            ("/x/1/2/y", false),
        ] {
            assert_eq!(e.path(Path::new(path)), out, "{path}");
        }
        for (path, out) in [("/q/z.o", true), ("/target/q", true), ("/q/a/b/c", true), ("/q/c", false)] {
            assert_eq!(e.within(Path::new(path)), out, "{path}");
        }
        assert!(!Exclude::default().has_paths() && !Exclude::default().name(OsStr::new("a")));
        assert!(Exclude::new(&["[".into()]).is_err());
    }
}
