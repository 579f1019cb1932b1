//! Completions for shells, from the definitions of the command lines.
//!
//! Not those of `clap_complete`: in bash it knows neither what stands behind `--` or `=` nor paths in the first place,
//! in no shell lists with commas, and it offers options that are hidden.

mod bash;
mod fish;
mod shape;
mod zsh;

pub(super) use bash::bash;
pub(super) use fish::fish;
pub(super) use zsh::zsh;

#[cfg(test)]
mod tests;
