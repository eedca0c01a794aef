//! What several of the programs need: no clock, no I/O.

pub mod random;
pub mod similar;
pub mod size;
