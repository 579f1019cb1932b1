//! Plans with one capability taken away at a time.
