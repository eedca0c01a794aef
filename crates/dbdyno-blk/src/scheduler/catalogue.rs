//! The schedulers there are, by name and version.

use super::anticipatory::{self, Anticipatory};
use super::bfq::{self, Bfq};
use super::cfq_rounds::{self, CfqRounds};
use super::cfq_slices::{self, CfqSlices};
use super::cfq_trees;
use super::cfq_trees::CfqTrees;
use super::contract::{Scheduler, SchedulerError, Settings, Tunable};
use super::deadline::{self, Deadline};
use super::kyber::{self, Kyber};
use super::mq_deadline::{self, MqDeadline};
use super::none::{self, NoScheduler};
use super::noop::{self, Noop};

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
    /// anticipatory, to 2.6.32.
    Anticipatory,
    /// cfq of 2.6.9: rounds over all processes.
    CfqRounds,
    /// cfq of 2.6.18: slices of time.
    CfqSlices,
    /// cfq of 2.6.32: one service tree.
    CfqOneTree,
    /// cfq of 2.6.33 to 4.20: a service tree for each way of being served.
    CfqTrees,
    /// none, of blk-mq.
    None,
    /// mq-deadline.
    MqDeadline,
    /// kyber.
    Kyber,
    /// bfq: its core.
    Bfq,
}

impl SchedulerName {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::NoopOld,
        Self::Noop,
        Self::DeadlineOld,
        Self::Deadline,
        Self::Anticipatory,
        Self::CfqRounds,
        Self::CfqSlices,
        Self::CfqOneTree,
        Self::CfqTrees,
        Self::None,
        Self::MqDeadline,
        Self::Kyber,
        Self::Bfq,
    ];

    /// Its name in `/sys/block/DEVICE/queue/scheduler`.
    pub fn sysfs(self) -> &'static str {
        match self {
            Self::NoopOld | Self::Noop => "noop",
            Self::DeadlineOld | Self::Deadline => "deadline",
            Self::Anticipatory => "anticipatory",
            Self::CfqRounds | Self::CfqSlices | Self::CfqOneTree | Self::CfqTrees => "cfq",
            Self::None => "none",
            Self::MqDeadline => "mq-deadline",
            Self::Kyber => "kyber",
            Self::Bfq => "bfq",
        }
    }

    /// What can be set of it.
    pub fn tunables(self) -> &'static [Tunable] {
        match self {
            Self::NoopOld | Self::Noop => noop::TUNABLES,
            Self::DeadlineOld | Self::Deadline => deadline::TUNABLES,
            Self::Anticipatory => anticipatory::TUNABLES,
            Self::CfqRounds => cfq_rounds::TUNABLES,
            Self::CfqSlices => cfq_slices::TUNABLES,
            Self::CfqOneTree => cfq_trees::TUNABLES_2_6_32,
            Self::CfqTrees => cfq_trees::TUNABLES,
            Self::None => none::TUNABLES,
            Self::MqDeadline => mq_deadline::TUNABLES,
            Self::Kyber => kyber::TUNABLES,
            Self::Bfq => bfq::TUNABLES,
        }
    }
}

/// A scheduler that holds nothing yet, with some of its tunables set.
///
/// # Errors
/// [`SchedulerError`] names what was given and what is possible.
pub fn scheduler(name: SchedulerName, overrides: &[(&str, u64)]) -> Result<Box<dyn Scheduler + Send>, SchedulerError> {
    Settings::new(name.sysfs(), name.tunables(), overrides)?;
    Ok(match name {
        SchedulerName::NoopOld => Box::new(Noop::new(true)),
        SchedulerName::Noop => Box::new(Noop::new(false)),
        SchedulerName::DeadlineOld => Box::new(Deadline::new(overrides, true)?),
        SchedulerName::Deadline => Box::new(Deadline::new(overrides, false)?),
        SchedulerName::Anticipatory => Box::new(Anticipatory::new(overrides)?),
        SchedulerName::CfqRounds => Box::new(CfqRounds::new(overrides)?),
        SchedulerName::CfqSlices => Box::new(CfqSlices::new(overrides)?),
        SchedulerName::CfqOneTree => Box::new(CfqTrees::new(overrides, true)?),
        SchedulerName::CfqTrees => Box::new(CfqTrees::new(overrides, false)?),
        SchedulerName::None => Box::<NoScheduler>::default(),
        SchedulerName::MqDeadline => Box::new(MqDeadline::new(overrides)?),
        SchedulerName::Kyber => Box::new(Kyber::new(overrides)?),
        SchedulerName::Bfq => Box::new(Bfq::new(overrides)?),
    })
}
