//! What a run leaves: a result, a series, a histogram log and a report for people.

pub mod files;
pub mod report;
pub mod result;
