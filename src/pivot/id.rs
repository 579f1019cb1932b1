//! What a row is known by.

use super::by::By;
use crate::model::Who;
use crate::text::foreign::Foreign;

/// What makes a row the same as one of the interval before.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// A number: of a process, a thread or a user.
    Number(u64),
    /// A name.
    Text(String),
    /// The rest.
    Other,
}

impl Id {
    /// Of a row of this kind.
    #[must_use]
    pub fn new(by: By, who: &Who) -> Self {
        if who.other {
            return Id::Other;
        }
        let text = |t: &Option<Foreign>| Id::Text(crate::text::foreign::or(t.as_ref(), ""));
        match by {
            By::Process => Id::Number(who.pid.unwrap_or(0).into()),
            By::Thread => Id::Number(u64::from(who.pid.unwrap_or(0)) << 32 | u64::from(who.tid.unwrap_or(0))),
            By::User => Id::Number(who.uid.unwrap_or(0).into()),
            By::Comm => text(&who.comm),
            By::Cgroup => text(&who.cgroup),
            By::Mount => Id::Text(format!("{:?} {:?}", who.device, who.mount)),
            By::Device => text(&who.device),
            By::Evictor => Id::Text(format!(
                "{:?} {:?} {:?} {:?} {:?}",
                who.how, who.owner, who.cgroup, who.comm, who.limit_of
            )),
            // A file that is renamed stays the same.
            By::File => {
                let name = who.path.as_ref().filter(|_| who.by_name || who.inode.is_none());
                Id::Text(format!("{:?} {:?} {:?} {name:?}", who.device, who.inode, who.generation))
            }
        }
    }
}

/// Who a row is about, and what it is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What it is known by.
    pub id: Id,
    /// Who.
    pub who: Who,
}
