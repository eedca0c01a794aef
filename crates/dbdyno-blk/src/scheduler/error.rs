//! What can be wrong with a choice of a scheduler.

use dbdyno_common::similar;
use thiserror::Error;

/// What is wrong with a choice of a scheduler.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SchedulerError {
    /// No such tunable.
    #[error("scheduler {scheduler} has no tunable \"{name}\"{hint}")]
    Tunable {
        /// The scheduler.
        scheduler: &'static str,
        /// What was given.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// A value outside of what the kernel keeps.
    #[error("scheduler {scheduler}: {tunable} = {value} is outside of {least} to {most}")]
    Value {
        /// The scheduler.
        scheduler: &'static str,
        /// Its tunable.
        tunable: &'static str,
        /// What was given.
        value: u64,
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
    /// No such scheduler in this kernel.
    #[error("kernel {kernel} has no scheduler \"{name}\"{hint}; it has {known}")]
    Unknown {
        /// The kernel.
        kernel: &'static str,
        /// What was given.
        name: String,
        /// What may have been meant.
        hint: String,
        /// All that it has.
        known: String,
    },
}

impl SchedulerError {
    pub(crate) fn unknown(kernel: &'static str, name: &str, known: &[&'static str]) -> Self {
        let hint = similar::did_you_mean(name, known.iter().copied());
        Self::Unknown { kernel, name: name.to_owned(), hint, known: known.join(", ") }
    }
}
