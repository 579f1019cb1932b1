//! How the multi-generational LRU of this kernel works, as far as its types tell.

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Array;
use libbpf_rs::btf::types::Struct;

/// Since when it works as it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generations {
    /// 6.1, where it came, to 6.13; also where the types are not known.
    Linux6_1,
    /// 6.14 to 7.1: pages of the working set have a tier of their own.
    Linux6_14,
    /// From 7.2 on: reclaim looks at no more pages than it should.
    Linux7_2,
}

/// What this kernel has.
#[must_use]
pub fn generations() -> Generations {
    Btf::from_vmlinux().map_or(Generations::Linux6_1, |btf| of(&btf))
}

fn of(btf: &Btf<'_>) -> Generations {
    match () {
        () if !protects_working_set(btf).unwrap_or(false) => Generations::Linux6_1,
        () if tells_dirty_apart(btf).unwrap_or(true) => Generations::Linux6_14,
        () => Generations::Linux7_2,
    }
}

/// There are as many tiers of pages that are protected as of those that are evicted, and not one less.
fn protects_working_set(btf: &Btf<'_>) -> Option<bool> {
    let all = btf.type_by_name::<Struct<'_>>("lru_gen_folio")?;
    // Tiers are the innermost of three dimensions.
    let tiers = |name: &str| {
        let member = all.iter().find(|m| m.name.is_some_and(|n| n == name))?;
        let mut array = btf.type_by_id::<Array<'_>>(member.ty)?;
        while let Some(inner) = btf.type_by_id::<Array<'_>>(array.ty()) {
            array = inner;
        }
        Some(array.capacity())
    };
    Some(tiers("protected")? == tiers("evicted")?)
}

/// Reclaim counted pages of files that it took, to know how many of them were dirty, for as long as it left these to others
/// before it looked closer. That went with the loop of before.
fn tells_dirty_apart(btf: &Btf<'_>) -> Option<bool> {
    let control = btf.type_by_name::<Struct<'_>>("scan_control")?;
    let counts = control.iter().find(|m| m.name.is_some_and(|n| n == "nr"))?;
    let counts = btf.type_by_id::<Struct<'_>>(counts.ty)?;
    Some(counts.iter().any(|m| m.name.is_some_and(|n| n == "file_taken")))
}
