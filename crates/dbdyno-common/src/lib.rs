//! What several of the programs need: no clock, no I/O.

pub mod option_file;
pub mod random;
pub mod similar;
pub mod size;
