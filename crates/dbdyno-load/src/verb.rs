//! What all verbs but `slap` have in common: `dbdyno VERB [LOAD] [flags] [prepare|run|cleanup]`.

use crate::error::Error;
use crate::flags::Flag;
use crate::values::Values;
use crate::workload::Workload;

/// Makes a workload of flags (under their canonical names) and the name of a load.
pub type Make = fn(&Values<'_>, &str) -> Result<Box<dyn Workload>, Error>;

/// A verb.
pub struct Verb {
    /// Its name.
    pub name: &'static str,
    /// What it does, for `--help`: usage line and some prose.
    pub about: &'static str,
    /// Its own flags; those of [`crate::run_options`] and [`crate::login`] come with every verb.
    pub flags: &'static [Flag],
    /// Names of its loads, the word after the verb; empty for a verb that has but one.
    pub loads: &'static [&'static str],
    /// The workload that is asked for.
    pub workload: Make,
}
