//! How text and numbers are written, for every output of the package: one room, below all that write.

pub mod apart;
pub mod foreign;
pub mod infile;
pub mod numbers;
pub mod outfile;
pub mod output;
pub mod table;
pub mod times;
pub mod width;
pub mod words;
pub mod wrap;
pub mod zone;
