//! `cachestat -- COMMAND`: one command and its descendants, explained.
