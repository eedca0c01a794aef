//! What several of the programs need: no clock, and no I/O but [`bounded`] reading.

pub mod bounded;
pub mod calendar;
pub mod histogram;
pub mod option_file;
pub mod random;
pub mod results;
pub mod similar;
pub mod size;
