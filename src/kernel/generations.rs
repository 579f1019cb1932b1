//! How the multi-generational LRU of this kernel works, as far as its types tell.

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Array;
use libbpf_rs::btf::types::Struct;

/// Pages of the working set have a tier of their own among those that are protected (Linux 6.14): there are as many of these as
/// there are tiers of evicted pages, and not one less. False where the types are not known.
#[must_use]
pub fn generations_are_later() -> bool {
    let Ok(btf) = Btf::from_vmlinux() else { return false };
    let Some(all) = btf.type_by_name::<Struct<'_>>("lru_gen_folio") else { return false };
    // Tiers are the innermost of three dimensions.
    let tiers = |name: &str| {
        let member = all.iter().find(|m| m.name.is_some_and(|n| n == name))?;
        let mut array = btf.type_by_id::<Array<'_>>(member.ty)?;
        while let Some(inner) = btf.type_by_id::<Array<'_>>(array.ty()) {
            array = inner;
        }
        Some(array.capacity())
    };
    tiers("protected").zip(tiers("evicted")).is_some_and(|(protected, evicted)| protected == evicted)
}
