//! What programs refer to by number in the kernel's type information.

use std::io;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::BtfKind;
use libbpf_rs::btf::BtfType;
use libbpf_rs::btf::types;

/// The running kernel's type information, read once.
pub struct Names(Btf<'static>);

impl Names {
    pub fn new() -> io::Result<Self> {
        Btf::from_vmlinux().map(Self).map_err(io::Error::other)
    }

    /// A function's id.
    pub fn function(&self, name: &str) -> io::Result<u32> {
        self.id(name, BtfKind::Func)
    }

    /// The id of a tracepoint's type.
    pub fn tracepoint(&self, name: &str) -> io::Result<u32> {
        self.id(&format!("btf_trace_{name}"), BtfKind::Typedef)
    }

    fn id(&self, name: &str, kind: BtfKind) -> io::Result<u32> {
        let found = self.0.type_by_name::<BtfType<'_>>(name).filter(|t| t.kind() == kind);
        found.map(|t| t.type_id().into()).ok_or_else(|| missing(name))
    }

    /// The offset in bytes of a member of a structure.
    pub fn offset(&self, structure: &str, member: &str) -> io::Result<i16> {
        let found = self.0.type_by_name::<types::Struct<'_>>(structure);
        found
            .as_ref()
            .and_then(|s| s.iter().find(|m| m.name.is_some_and(|n| n == member)))
            .and_then(|m| match m.attr {
                types::MemberAttr::Normal { offset } => i16::try_from(offset / 8).ok(),
                types::MemberAttr::BitField { .. } => None,
            })
            .ok_or_else(|| missing(member))
    }
}

fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{name} is not in the kernel's BTF"))
}
