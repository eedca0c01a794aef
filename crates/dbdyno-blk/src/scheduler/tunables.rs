//! What can be set of a scheduler, by its name in sysfs.

use dbdyno_common::similar;

use super::error::SchedulerError;

/// What a tunable's number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests, sectors' multiples, or whatever the name says.
    Count,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// KiB.
    Kibibytes,
    /// 0 or 1.
    Switch,
}

impl Unit {
    /// As people write it; empty for a plain number.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
            Self::Kibibytes => "KiB",
            Self::Switch => "0 or 1",
        }
    }
}

/// One file of `/sys/block/DEVICE/queue/iosched`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunable {
    /// The file's name.
    pub name: &'static str,
    /// Its default.
    pub default: u64,
    /// What it counts.
    pub unit: Unit,
    /// Least value that the kernel keeps.
    pub least: u64,
    /// Largest value that the kernel keeps.
    pub most: u64,
}

impl Tunable {
    pub(super) const fn new(name: &'static str, default: u64, unit: Unit) -> Self {
        let most = match unit {
            Unit::Switch => 1,
            _ => i32::MAX as u64,
        };
        Self { name, default, unit, least: 0, most }
    }
}

/// The tunables of one scheduler with their values.
#[derive(Debug)]
pub(super) struct Settings {
    tunables: &'static [Tunable],
    values: Vec<u64>,
}

impl Settings {
    /// The defaults, with some replaced.
    pub(super) fn new(
        scheduler: &'static str,
        tunables: &'static [Tunable],
        given: &[(&str, u64)],
    ) -> Result<Self, SchedulerError> {
        let mut values: Vec<u64> = tunables.iter().map(|tunable| tunable.default).collect();
        for &(name, value) in given {
            let Some(at) = tunables.iter().position(|tunable| tunable.name == name) else {
                return Err(unknown(scheduler, tunables, name));
            };
            let Tunable { name, least, most, .. } = tunables[at];
            if !(least..=most).contains(&value) {
                return Err(SchedulerError::Value { scheduler, tunable: name, value, least, most });
            }
            values[at] = value;
        }
        Ok(Self { tunables, values })
    }

    /// The value of a tunable of this scheduler.
    pub(super) fn get(&self, name: &str) -> u64 {
        let at = self.tunables.iter().position(|tunable| tunable.name == name);
        debug_assert!(at.is_some(), "{name} is no tunable");
        at.map_or(0, |at| self.values[at])
    }

    /// The same in nanoseconds, of one that is a time.
    pub(super) fn ns(&self, name: &str) -> u64 {
        let unit = self.tunables.iter().find(|tunable| tunable.name == name).map(|tunable| tunable.unit);
        let factor = match unit {
            Some(Unit::Milliseconds) => 1_000_000,
            Some(Unit::Microseconds) => 1_000,
            _ => 1,
        };
        self.get(name) * factor
    }
}

fn unknown(scheduler: &'static str, tunables: &[Tunable], name: &str) -> SchedulerError {
    let known: Vec<_> = tunables.iter().map(|tunable| tunable.name).collect();
    let hint = if known.is_empty() {
        "; it has none".to_owned()
    } else {
        let near = similar::did_you_mean(name, known.iter().copied());
        if near.is_empty() { format!("; known are {}", known.join(", ")) } else { near }
    };
    SchedulerError::Tunable { scheduler, name: name.to_owned(), hint }
}
