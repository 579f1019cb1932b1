//! Streams whose answer is known.

#![allow(clippy::unwrap_used)]
