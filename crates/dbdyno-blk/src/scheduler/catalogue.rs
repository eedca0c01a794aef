//! The schedulers there are, by name and version.

use super::contract::Scheduler;
use super::deadline::{self, Deadline};
use super::error::SchedulerError;
use super::mq_deadline::{self, MqDeadline};
use super::none::{self, NoScheduler};
use super::noop::{self, Noop};
use super::tunables::{Settings, Tunable};

/// A scheduler as it was in some kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchedulerName {
    /// noop to 2.6.18: merges with the last request merged only.
    NoopOld,
    /// noop from 2.6.19.
    Noop,
    /// deadline to 2.6.24: a gap ends a batch.
    DeadlineOld,
    /// deadline from 2.6.25.
    Deadline,
    /// none, of blk-mq.
    None,
    /// mq-deadline.
    MqDeadline,
}

impl SchedulerName {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::NoopOld, Self::Noop, Self::DeadlineOld, Self::Deadline, Self::None, Self::MqDeadline];

    /// Its name in `/sys/block/DEVICE/queue/scheduler`.
    pub fn sysfs(self) -> &'static str {
        match self {
            Self::NoopOld | Self::Noop => "noop",
            Self::DeadlineOld | Self::Deadline => "deadline",
            Self::None => "none",
            Self::MqDeadline => "mq-deadline",
        }
    }

    /// What can be set of it.
    pub fn tunables(self) -> &'static [Tunable] {
        match self {
            Self::NoopOld | Self::Noop => noop::TUNABLES,
            Self::DeadlineOld | Self::Deadline => deadline::TUNABLES,
            Self::None => none::TUNABLES,
            Self::MqDeadline => mq_deadline::TUNABLES,
        }
    }
}

/// A scheduler that holds nothing yet, with some of its tunables set.
///
/// # Errors
/// [`SchedulerError`] names what was given and what is possible.
pub fn scheduler(name: SchedulerName, given: &[(&str, u64)]) -> Result<Box<dyn Scheduler + Send>, SchedulerError> {
    Settings::new(name.sysfs(), name.tunables(), given)?;
    Ok(match name {
        SchedulerName::NoopOld => Box::new(Noop::new(true)),
        SchedulerName::Noop => Box::new(Noop::new(false)),
        SchedulerName::DeadlineOld => Box::new(Deadline::new(given, true)?),
        SchedulerName::Deadline => Box::new(Deadline::new(given, false)?),
        SchedulerName::None => Box::<NoScheduler>::default(),
        SchedulerName::MqDeadline => Box::new(MqDeadline::new(given)?),
    })
}
