//! Kernels: which parts of the block layer hold in which version, and the stacks made of them.

use dbdyno_common::similar;
use dbdyno_device::DeviceModel;
use thiserror::Error;

use crate::layer::{Drive, Flushing, Layer, Parts, Plugging, Sharing};
use crate::queue::Limits;
use crate::scheduler::{CFQ_ROUNDS_NR_REQUESTS, SchedulerError, SchedulerName, scheduler};

/// The block layer of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// The version, as users give it.
    pub name: &'static str,
    /// The schedulers it has, the default one first.
    pub schedulers: &'static [SchedulerName],
    /// How requests are held back.
    pub plugging: Plugging,
    /// Which requests share a pool.
    pub sharing: Sharing,
    /// The largest request unless `max_sectors_kb` is set.
    pub limits: Limits,
    /// How writes that ask for flushes are served.
    pub flushing: Flushing,
}

const DEVICE_PLUG: Plugging = Plugging::Device { threshold: 4, delay_ns: 3_000_000 };
const PROCESS_PLUG: Plugging = Plugging::Process { most: 16, sectors: 256, sorts: true };
const LEGACY_LIMITS: Limits = Limits { sectors: 1024, segments: 128 };
const LATE_LIMITS: Limits = Limits { sectors: 2560, segments: 168 };

const KERNELS: [Kernel; 6] = [
    Kernel {
        name: "2.6.9",
        schedulers: &[
            SchedulerName::CfqRounds,
            SchedulerName::NoopOld,
            SchedulerName::DeadlineOld,
            SchedulerName::Anticipatory,
        ],
        plugging: DEVICE_PLUG,
        sharing: Sharing::Direction,
        limits: LEGACY_LIMITS,
        flushing: Flushing::Barrier,
    },
    Kernel {
        name: "2.6.18",
        schedulers: &[
            SchedulerName::CfqSlices,
            SchedulerName::NoopOld,
            SchedulerName::DeadlineOld,
            SchedulerName::Anticipatory,
        ],
        plugging: DEVICE_PLUG,
        sharing: Sharing::Direction,
        limits: LEGACY_LIMITS,
        flushing: Flushing::Barrier,
    },
    Kernel {
        name: "2.6.32",
        schedulers: &[
            SchedulerName::CfqOneTree,
            SchedulerName::Noop,
            SchedulerName::Deadline,
            SchedulerName::Anticipatory,
        ],
        plugging: DEVICE_PLUG,
        sharing: Sharing::Sync,
        limits: LEGACY_LIMITS,
        flushing: Flushing::Barrier,
    },
    Kernel {
        name: "3.10",
        schedulers: &[SchedulerName::CfqTrees, SchedulerName::Noop, SchedulerName::Deadline],
        plugging: PROCESS_PLUG,
        sharing: Sharing::Sync,
        limits: LEGACY_LIMITS,
        flushing: Flushing::Sequence,
    },
    Kernel {
        name: "4.4",
        schedulers: &[SchedulerName::CfqTrees, SchedulerName::Noop, SchedulerName::Deadline],
        plugging: PROCESS_PLUG,
        sharing: Sharing::Sync,
        limits: LATE_LIMITS,
        flushing: Flushing::Sequence,
    },
    Kernel {
        name: "6.x",
        schedulers: &[SchedulerName::None, SchedulerName::MqDeadline, SchedulerName::Kyber, SchedulerName::Bfq],
        plugging: Plugging::Process { most: 32, sectors: 256, sorts: false },
        sharing: Sharing::Tags,
        limits: LATE_LIMITS,
        flushing: Flushing::Sequence,
    },
];

/// What a user sets of a stack; what is not set is the kernel's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings<'a> {
    /// The scheduler's name in sysfs.
    pub scheduler: Option<&'a str>,
    /// Its tunables.
    pub tunables: &'a [(&'a str, u64)],
    /// `nr_requests`.
    pub nr_requests: Option<usize>,
    /// Commands that the drive takes at once, 1 to 256; 32 unless it is set.
    pub depth: Option<usize>,
    /// Most sectors of a request (twice `max_sectors_kb`), 8 to 65,535.
    pub max_sectors: Option<u32>,
    /// Most pieces of memory of a request (`max_segments`), 1 to 65,535.
    pub max_segments: Option<u32>,
    /// The drive has no heads (`queue/rotational` is 0).
    pub non_rotational: bool,
    /// The drive takes no writes with FUA: a flush follows them.
    pub no_fua: bool,
    /// Target of writeback throttling, microseconds (`wbt_lat_usec`); 0 turns it off.
    pub wbt_lat_usec: Option<u64>,
}

/// What is wrong with a stack.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum KernelError {
    /// No such kernel.
    #[error("there is no kernel \"{name}\"; the kernels are {known}{hint}")]
    Unknown {
        /// What was given.
        name: String,
        /// What may have been meant.
        hint: String,
        /// All there are.
        known: String,
    },
    /// The scheduler, or one of its tunables.
    #[error(transparent)]
    Scheduler(#[from] SchedulerError),
    /// Writeback throttling where there is none.
    #[error(
        "kernel {kernel} with {scheduler} has no writeback throttling (it needs 4.10, and not bfq): leave wbt_lat_usec out"
    )]
    Unthrottled {
        /// The kernel.
        kernel: &'static str,
        /// The scheduler.
        scheduler: &'static str,
    },
    /// A number that the kernel does not take.
    #[error("kernel {kernel}: {field} = {value} is not between {least} and {most}")]
    Value {
        /// The kernel.
        kernel: &'static str,
        /// What was set.
        field: &'static str,
        /// To what.
        value: usize,
        /// Least.
        least: usize,
        /// Most.
        most: usize,
    },
}

/// What a simulator's memory is meant for; the kernels of before blk-mq had no limit.
const LEGACY_REQUESTS_MOST: usize = 1_000_000;

/// Defaults of `wbt_lat_usec`: of a drive with heads, and without.
const WBT_LAT_USEC: [u64; 2] = [75_000, 2000];

/// A day: far beyond what any request waits.
const WBT_LAT_USEC_MOST: usize = 86_400_000_000;

impl Kernel {
    /// All of them, the oldest first.
    pub const ALL: &'static [Self] = &KERNELS;

    /// The one of this name.
    ///
    /// # Errors
    /// [`KernelError::Unknown`] with the nearest name.
    pub fn named(name: &str) -> Result<Self, KernelError> {
        Self::ALL.iter().find(|kernel| kernel.name == name).copied().ok_or_else(|| KernelError::Unknown {
            name: name.to_owned(),
            hint: similar::did_you_mean(name, Self::ALL.iter().map(|kernel| kernel.name)),
            known: Self::ALL.iter().map(|kernel| kernel.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// The scheduler of this kernel by its name in sysfs; the default without a name.
    ///
    /// # Errors
    /// [`SchedulerError::Unknown`] with the nearest name.
    pub fn scheduler(&self, name: Option<&str>) -> Result<SchedulerName, SchedulerError> {
        let Some(name) = name else { return Ok(self.schedulers[0]) };
        let scheduler_name = self.schedulers.iter().find(|scheduler| scheduler.sysfs() == name).copied();
        scheduler_name.ok_or_else(|| {
            let known: Vec<_> = self.schedulers.iter().map(|scheduler| scheduler.sysfs()).collect();
            SchedulerError::unknown(self.name, name, &known)
        })
    }

    /// Its block layer over a drive.
    ///
    /// # Errors
    /// [`KernelError`] names what was given and what is possible.
    pub fn layer(&self, settings: &Settings, model: Box<dyn DeviceModel + Send>) -> Result<Layer, KernelError> {
        let name = self.scheduler(settings.scheduler)?;
        let depth = settings.depth.unwrap_or(32);
        self.check("depth", depth, 1, 256)?;
        let is_mq = self.sharing == Sharing::Tags;
        let (default, most) = match name {
            SchedulerName::None => (depth, depth),
            SchedulerName::CfqRounds => (CFQ_ROUNDS_NR_REQUESTS, LEGACY_REQUESTS_MOST),
            _ if is_mq => (2 * depth.min(128), 2048),
            _ => (128, LEGACY_REQUESTS_MOST),
        };
        let nr_requests = settings.nr_requests.unwrap_or(default);
        self.check("nr_requests", nr_requests, if name == SchedulerName::None { 1 } else { 4.min(default) }, most)?;
        let limits = Limits {
            sectors: settings.max_sectors.unwrap_or(self.limits.sectors),
            segments: settings.max_segments.unwrap_or(self.limits.segments),
        };
        self.check("max_sectors", limits.sectors as usize, 8, 65_535)?;
        self.check("max_segments", limits.segments as usize, 1, 65_535)?;
        Ok(Layer::new(Parts {
            plugging: self.plugging,
            sharing: self.sharing,
            nr_requests,
            limits,
            rotational: !settings.non_rotational,
            flushing: self.flushing,
            takes_fua: !settings.no_fua,
            scheduler: scheduler(name, settings.tunables)?,
            throttle_ns: self.throttle_ns(name, settings)?,
            drive: Drive::new(model, depth),
        }))
    }

    /// The target of writeback throttling; none if it is off.
    fn throttle_ns(&self, name: SchedulerName, settings: &Settings) -> Result<Option<u64>, KernelError> {
        let default = if settings.non_rotational { WBT_LAT_USEC[1] } else { WBT_LAT_USEC[0] };
        let target_us = match settings.wbt_lat_usec {
            wbt_lat_usec if self.sharing == Sharing::Tags && name != SchedulerName::Bfq => {
                wbt_lat_usec.unwrap_or(default)
            }
            None | Some(0) => 0,
            Some(_) => return Err(KernelError::Unthrottled { kernel: self.name, scheduler: name.sysfs() }),
        };
        self.check("wbt_lat_usec", target_us as usize, 0, WBT_LAT_USEC_MOST)?;
        Ok((target_us > 0).then_some(target_us * 1000))
    }

    fn check(&self, field: &'static str, value: usize, least: usize, most: usize) -> Result<(), KernelError> {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(KernelError::Value { kernel: self.name, field, value, least, most })
    }
}
