//! The directory of `--textfile`: held against others, and what is said where nothing can be written there.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::options::Options;
use crate::exit::Failure;
use crate::exit::is_full;
use crate::text::foreign::Foreign;
use crate::text::outfile;

/// What came of holding the directory of the text file.
#[derive(Debug)]
pub(super) enum Held {
    /// With this; `None`: there is no text file, or nobody can be held off.
    By { _by: Option<OwnedFd> },
    /// It is that of the record, which is not made yet.
    Later,
}

/// Holds the directory of the text file, where there is to be one: the counters of two, in turn, are no counters. Who explains
/// writes nothing, and where no lock can be had, or somebody else's file lies there, nobody is held off.
pub(super) fn hold(options: &Options) -> Result<Held, Failure> {
    let Some(directory) = options.textfile.as_deref() else { return Ok(Held::By { _by: None }) };
    let name = Foreign::from(directory);
    if !directory.is_dir() {
        let full = |path: &Path| std::path::absolute(path).ok();
        let recorded = options.record.as_ref().and_then(|(record, _)| full(record));
        if !directory.exists() && recorded.is_some() && recorded == full(directory) {
            return Ok(Held::Later);
        }
        return Err(Failure::usage(format!("{name} is no directory"))
            .remedy("name the directory of node_exporter's '--collector.textfile.directory'"));
    }
    if options.counting.explain {
        return Ok(Held::By { _by: None });
    }
    match outfile::hold(directory, ".cachetopd.lock") {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
            Err(Failure::usage(format!("{name} is held: another one writes its text file there"))
                .remedy("name another directory, or end the other one"))
        }
        held => Ok(Held::By { _by: held.ok() }),
    }
}

/// Why there is no text file, and what can be done about it: its name is given, its directory is not.
pub(super) fn unwritten(path: &Path, error: &outfile::Error) -> Failure {
    let failure = match error {
        outfile::Error::Io(e) => {
            outfile::not_in_directory(format_args!("cannot write {}", Foreign::from(path)), e)
        }
        outfile::Error::Planted(..) => error.about(path),
    };
    // What is written is bounded to the directory, wherever the link leads.
    let full = matches!(error, outfile::Error::Io(e) if is_full(e.kind()));
    if path.is_symlink() && !full {
        return failure.remedy("it is a symbolic link: remove it, or name the directory that it leads to");
    }
    failure
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::Parser as _;

    use super::*;
    use crate::cli::CommandLine as _;

    #[test]
    fn why_there_is_no_text_file_is_said_with_its_path_and_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cachetopd.prom");
        let refused = || io::Error::from_raw_os_error(libc::EACCES).into();
        let said = |error: outfile::Error| {
            let Failure { message, remedy, .. } = unwritten(&path, &error);
            assert!(message.starts_with(&format!("cannot write {}: ", path.display())), "{message}");
            remedy.unwrap()
        };
        assert_eq!(said(refused()), "name a directory that you may write to");
        assert!(said(outfile::Error::Planted("a file", 7)).starts_with("remove it"));
        std::os::unix::fs::symlink("/elsewhere", &path).unwrap();
        assert!(said(refused()).contains("symbolic link"));
    }

    #[test]
    fn the_directory_of_the_record_is_made_before_the_text_file_is_written_there() {
        let dir = tempfile::tempdir().unwrap();
        let at = |record: &str, textfile: &str| {
            let words = ["cachetopd", "--record", record, "--textfile", textfile];
            crate::cli::daemon::Args::try_parse_from(words).unwrap().task().unwrap()
        };
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        assert!(matches!(hold(&at(&path("new"), &path("new/"))), Ok(Held::Later)));
        // Nobody makes it else.
        assert!(hold(&at(&path("new"), &path("other"))).unwrap_err().message.ends_with("is no directory"));
        std::fs::write(path("new"), "").unwrap();
        assert!(hold(&at(&path("new"), &path("new"))).is_err());
        std::fs::remove_file(path("new")).unwrap();
        std::fs::create_dir(path("new")).unwrap();
        assert!(matches!(hold(&at(&path("new"), &path("new"))), Ok(Held::By { _by: Some(_) })));
    }
}
