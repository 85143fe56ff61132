//! Arrays and tables outside of any runtime, the files that hold them, and digests of files and texts.

pub mod digest;

pub mod array;

pub mod table;
