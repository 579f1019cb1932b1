//! The layers of overlayfs: directories of other file systems, in which the files lie that it shows.

use std::fs;

use super::mounts::Mount;
use super::mounts::below;

/// Those of one mount.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// The one that is written to.
    pub upper: Option<String>,
    /// Those below, the first one first.
    pub lower: Vec<String>,
    /// Where copies lie until they are whole.
    pub work: Option<String>,
}

impl Layers {
    /// Of a mount of overlayfs; `None` of any other.
    #[must_use]
    pub fn of(mount: &Mount) -> Option<Self> {
        if mount.kind != "overlay" {
            return None;
        }
        let option = |key: &'static str| mount.options.split(',').filter_map(move |o| o.strip_prefix(key));
        let lower = option("lowerdir=").flat_map(|l| l.split(':')).filter(|l| !l.is_empty());
        // Since 6.5, each layer may be an option of its own.
        let lower = lower.chain(option("lowerdir+=")).map(String::from).collect();
        let one = |key| option(key).next().map(String::from);
        Some(Self { upper: one("upperdir="), lower, work: one("workdir=") })
    }

    /// The same without links: who names the layers to overlayfs may do so by short ones.
    #[must_use]
    pub fn resolved(self) -> Self {
        let resolve = |dir: String| match fs::canonicalize(&dir)
            .ok()
            .and_then(|d| d.into_os_string().into_string().ok())
        {
            Some(plain) => plain,
            None => dir,
        };
        Self {
            upper: self.upper.map(resolve),
            lower: self.lower.into_iter().map(resolve).collect(),
            work: self.work.map(resolve),
        }
    }

    /// Where a file of a layer below lies once it is copied.
    #[must_use]
    pub fn upper_of(&self, path: &str) -> Option<String> {
        let upper = self.upper.as_ref()?;
        self.lower.iter().find_map(|l| Some(format!("{upper}{}", below(path, l)?)))
    }

    /// Whether this is a copy that is being made, as overlayfs calls them.
    #[must_use]
    pub fn makes(&self, path: &str) -> bool {
        let rest = self.work.as_ref().and_then(|w| below(path, w));
        let name = rest.and_then(|r| r.strip_prefix("/work/"));
        name.is_some_and(|name| name.starts_with('#') && !name.contains('/'))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn layers(options: &str) -> Layers {
        Layers::of(&Mount::parse(&format!("33 27 0:50 / /m rw - overlay o rw,{options}")).unwrap()).unwrap()
    }

    #[test]
    fn a_copy_lies_where_its_original_does() {
        let l = layers("lowerdir=/l1:/l2,upperdir=/u,workdir=/w");
        assert_eq!(l.upper_of("/l2/d/f").as_deref(), Some("/u/d/f"));
        assert_eq!(l.upper_of("/l22/d/f"), None);
        assert_eq!(l.upper_of("/u/d/f"), None);
        assert_eq!(layers("lowerdir=/l1").upper_of("/l1/f"), None, "nothing is written");
        let single = layers("lowerdir+=/a,lowerdir+=/b,upperdir=/u,workdir=/w");
        assert_eq!(single.upper_of("/b/f").as_deref(), Some("/u/f"));
        let disk = Mount::parse("33 27 0:50 / /m rw - ext4 /dev/x rw,upperdir=/u").unwrap();
        assert_eq!(Layers::of(&disk), None);
    }

    #[test]
    fn links_to_layers_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(at("long")).unwrap();
        std::os::unix::fs::symlink(at("long"), at("l")).unwrap();
        let l = layers(&format!("lowerdir={}:/gone,upperdir=/u,workdir=/w", at("l"))).resolved();
        assert_eq!(l.lower, [at("long"), "/gone".into()]);
    }

    #[test]
    fn what_is_being_made_lies_in_a_directory_of_its_own() {
        let l = layers("lowerdir=/l1,upperdir=/u,workdir=/w");
        assert!(l.makes("/w/work/#6037524") && l.makes("/w/work/#1f"));
        assert!(
            !l.makes("/w/work/f") && !l.makes("/w/#1") && !l.makes("/u/work/#1") && !l.makes("/w/work/#1/f")
        );
        assert!(!layers("lowerdir=/l1").makes("/w/work/#1"));
    }
}
