//! `cachetop`: the live view.
