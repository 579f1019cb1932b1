//! The classic engine: the method of bcc's `cachestat`, for people who compare with old figures, and for kernels
//! where nothing better attaches.
//!
//! Four counts, no request and no state: pages added to the cache, pages marked accessed, pages that got dirty,
//! buffers that got dirty. The figures are differences of these ([`Figures`]). The arithmetic is bcc's, with two
//! changes: a large folio counts as the pages that it has, and nothing is clamped.

mod counts;
mod explain;
mod model;
pub mod plan;
mod session;

pub use counts::Counter;
pub use counts::Counts;
pub use counts::Known;
pub use counts::ProcessSample;
pub use counts::Sample;
pub use explain::Told;
pub use explain::differences;
#[cfg(test)]
pub(crate) use explain::told;
pub use model::Figures;
pub(crate) use model::join;
pub(crate) use model::narrow;
pub use plan::Means;
pub use plan::Plan;
pub use session::Classic;

#[cfg(test)]
mod tests;
