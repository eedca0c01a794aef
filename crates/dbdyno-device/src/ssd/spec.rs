//! `[ssd]` of a drive file.

use serde::Deserialize;

use crate::info::{above_zero, fields, within};

/// The mapping unit. Smaller writes cost a whole one; the reading of the rest is left out.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The numbers that make a solid-state drive. Each field's unit is in its name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SsdSpec {
    /// Capacity, bytes.
    pub capacity_bytes: u64,
    /// Commands the drive works on at once; more wait in the order they came.
    pub queue_depth: usize,
    /// True where FLUSH waits for all commands before it and holds up all behind it (ATA).
    pub flush_is_a_barrier: bool,
    /// True where capacitors make the write buffer safe, so that FLUSH has nothing to wait for.
    pub power_loss_protected: bool,
    /// True where FLUSH is acknowledged at once and leaves the write buffer as it is: a drive that lies.
    #[serde(default)]
    pub flush_ignored: bool,
    /// Time FLUSH takes beyond writing the buffer (mapping tables), if there was anything to write, microseconds.
    pub flush_us: f64,
    /// The host link, each way, MB/s.
    pub link_mb_s: f64,
    /// Firmware: latency it adds to a write, and to every other command, microseconds.
    pub write_firmware_us: f64,
    pub read_firmware_us: f64,
    /// Firmware: time from the start of a write, or of any other command, to that of the next, microseconds (the
    /// inverse of the highest IOPS).
    pub write_command_us: f64,
    pub read_command_us: f64,
    /// Memory for writes not yet programmed, bytes.
    pub buffer_bytes: u64,
    /// How far the drive reads on behind a read that continues another, bytes; 0: not at all.
    #[serde(default)]
    pub read_ahead_bytes: u64,
    pub flash: FlashSpec,
    pub ftl: FtlSpec,
    pub slc: Option<SlcSpec>,
    pub thermal: Option<ThermalSpec>,
    pub read_retry: Option<ReadRetrySpec>,
}

/// `[ssd.flash]`: dies and channels.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FlashSpec {
    /// Flash channels, each a shared bus.
    pub channels: usize,
    /// Dies on each channel that work at the same time.
    pub dies_per_channel: usize,
    /// One channel's transfer rate, MB/s.
    pub channel_mb_s: f64,
    /// Planes of a die: programmed and erased together.
    pub planes: u32,
    /// True where the planes of a die may read different addresses at the same time.
    pub planes_read_apart: bool,
    /// What one plane reads at once, bytes: a multiple of 4096.
    pub page_bytes: u64,
    /// Flash pages of one plane that are programmed together: the bits of the cell if in one shot, else 1.
    pub pages_per_program: u32,
    /// Time from cell to page register for each of the cell's bits in turn, microseconds.
    pub read_us: Vec<f64>,
    /// Time to program a unit, microseconds; several if they alternate.
    pub program_us: Vec<f64>,
    /// One die's erase block over all its planes, bytes, and the time to erase it, microseconds.
    pub block_bytes: u64,
    pub erase_us: f64,
    /// How often one program or erase may be suspended for reads (0: never), and what suspending it costs each time,
    /// microseconds.
    pub suspends_max: u32,
    pub suspend_us: f64,
    /// Reads a die may serve in a row while a program or an erase waits for it.
    pub reads_before_program: u32,
}

/// `[ssd.ftl]`: the translation layer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FtlSpec {
    /// Spare area as a part of the capacity, without the few blocks that are being written or erased.
    pub over_provisioning: f64,
}

/// `[ssd.slc]`: blocks written with one bit a cell, as a cache.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlcSpec {
    /// What is always a cache, bytes at the drive's full capacity.
    pub static_bytes: u64,
    /// What is a cache while there are enough unwritten blocks to make it of, bytes at the drive's full capacity.
    pub dynamic_bytes: u64,
    pub read_us: f64,
    pub program_us: f64,
    /// The cache is emptied when the host has written nothing for so long, milliseconds.
    pub fold_after_idle_ms: f64,
    /// What the host may write beside the cache while a full cache is emptied, MB/s. Without it, a full cache stays
    /// full and the host writes past it as fast as the dies can.
    pub write_while_folding_mb_s: Option<f64>,
    /// Part of the cache that must be free before the host writes to it again.
    pub refill_at: f64,
    /// True where a disk smaller than the drive has as much less of a cache; else it has all of the drive's.
    #[serde(default)]
    pub scaled: bool,
}

/// `[ssd.thermal]`: one heat capacity that loses heat to the air.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThermalSpec {
    /// Temperature of the air.
    pub ambient_c: f64,
    pub idle_w: f64,
    /// What reading and programming a gigabyte (10^9 bytes) of flash takes, joules.
    pub read_j_per_gb: f64,
    pub program_j_per_gb: f64,
    /// Rise over the air at a steady power.
    pub rise_c_per_w: f64,
    /// Time in which 63 % of a change of temperature has happened, seconds.
    pub time_constant_s: f64,
    /// Above the one the drive slows down, below the other it stops doing so.
    pub throttle_above_c: f64,
    pub resume_below_c: f64,
    /// By how much commands and the link are slower then.
    pub slowdown: f64,
}

/// `[ssd.read_retry]`: pages of worn blocks that must be read again before their errors can be corrected.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadRetrySpec {
    /// Part of the blocks that are worn; all if not given. Those of the cache of single-bit blocks never are.
    #[serde(default = "all")]
    pub worn_blocks: f64,
    /// How probable it is that a read of a flash page of a worn block must be repeated.
    pub probability: f64,
    /// How often it is repeated then.
    pub retries: u32,
    /// What each repetition takes, with its transfer to the controller, microseconds; if not given the page's own time.
    pub retry_us: Option<f64>,
}

fn all() -> f64 {
    1.0
}

impl ReadRetrySpec {
    fn check(&self) -> Result<(), String> {
        for (field, value, most) in [
            ("read_retry.worn_blocks", self.worn_blocks, 1.0),
            ("read_retry.probability", self.probability, 1.0),
            ("read_retry.retries", f64::from(self.retries), 1e3),
            ("read_retry.retry_us", self.retry_us.unwrap_or(0.0), 1e6),
        ] {
            within(&(0.0..=most), &[(field, value)])?;
        }
        Ok(())
    }
}

impl SsdSpec {
    /// Refuses numbers the model cannot work with, naming the first.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_positive()?;
        self.check_times()?;
        let flash = &self.flash;
        if !flash.page_bytes.is_multiple_of(PAGE_BYTES) || flash.page_bytes == 0 || flash.page_bytes > 1 << 20 {
            return Err(format!("flash.page_bytes = {} is not a multiple of 4096 up to 1 MiB", flash.page_bytes));
        }
        let unit_bytes = flash.page_bytes * u64::from(flash.planes) * u64::from(flash.pages_per_program);
        if flash.block_bytes < unit_bytes {
            return Err(format!("flash.block_bytes = {} is less than a program of {unit_bytes}", flash.block_bytes));
        }
        if self.buffer_bytes < 3 * unit_bytes {
            return Err(format!("buffer_bytes = {} is less than three programs of {unit_bytes}", self.buffer_bytes));
        }
        let spare = self.ftl.over_provisioning;
        if !(0.005..=10.0).contains(&spare) {
            return Err(format!("ftl.over_provisioning = {spare} is not between 0.005 and 10"));
        }
        // Pages are numbered with 32 bits.
        if self.capacity_bytes as f64 * (1.2 + spare) / PAGE_BYTES as f64 > f64::from(u32::MAX) {
            return Err(format!("capacity_bytes = {} and the spare area exceed 16 TiB", self.capacity_bytes));
        }
        if self.flush_ignored && self.power_loss_protected {
            return Err(
                "flush_ignored = true needs a buffer that a power cut takes: power_loss_protected = false".into()
            );
        }
        within(&(0.0..=1e9), &fields! { self; read_ahead_bytes })?;
        self.read_retry.as_ref().map_or(Ok(()), ReadRetrySpec::check)?;
        self.slc.as_ref().map_or(Ok(()), |slc| slc.check(self.capacity_bytes))?;
        self.thermal.as_ref().map_or(Ok(()), ThermalSpec::check)
    }

    fn check_positive(&self) -> Result<(), String> {
        above_zero(&fields! { self;
            link_mb_s, capacity_bytes, queue_depth, flash.channel_mb_s, flash.channels, flash.dies_per_channel,
            flash.planes, flash.page_bytes, flash.pages_per_program, flash.reads_before_program
        })?;
        within(
            &(1.0..=64.0),
            &fields! { self;
                flash.channels, flash.dies_per_channel, flash.planes, flash.pages_per_program
            },
        )
    }

    fn check_times(&self) -> Result<(), String> {
        let flash = &self.flash;
        if flash.read_us.is_empty() || flash.program_us.is_empty() {
            return Err("flash.read_us and flash.program_us need at least one time each".into());
        }
        let reads = flash.read_us.iter().map(|time| ("flash.read_us", *time));
        let programs = flash.program_us.iter().map(|time| ("flash.program_us", *time));
        let single = fields! { self;
            flush_us, write_firmware_us, read_firmware_us, write_command_us, read_command_us, flash.erase_us,
            flash.suspend_us
        };
        within(&(0.0..=1e9), &single.into_iter().chain(reads).chain(programs).collect::<Vec<_>>())
    }
}

impl SlcSpec {
    /// The cache of a disk of this size, bytes.
    pub(crate) fn bytes_on(&self, size_bytes: u64, capacity_bytes: u64) -> u64 {
        let bytes = self.static_bytes + self.dynamic_bytes;
        if self.scaled { (bytes as f64 * size_bytes as f64 / capacity_bytes as f64) as u64 } else { bytes }
    }

    fn check(&self, capacity_bytes: u64) -> Result<(), String> {
        let bytes = self.static_bytes.saturating_add(self.dynamic_bytes);
        if bytes == 0 || bytes > capacity_bytes / 3 {
            return Err(format!("slc: a cache of {bytes} bytes is empty, or larger than a third of the drive"));
        }
        within(
            &(0.0..=1e9),
            &[
                ("slc.read_us", self.read_us),
                ("slc.program_us", self.program_us),
                ("slc.fold_after_idle_ms", self.fold_after_idle_ms),
            ],
        )?;
        within(&(0.0..=1.0), &[("slc.refill_at", self.refill_at)])?;
        above_zero(
            &self
                .write_while_folding_mb_s
                .map(|rate| ("slc.write_while_folding_mb_s", rate))
                .into_iter()
                .collect::<Vec<_>>(),
        )
    }
}

impl ThermalSpec {
    fn check(&self) -> Result<(), String> {
        for (field, value, range) in [
            ("thermal.ambient_c", self.ambient_c, -50.0..=100.0),
            ("thermal.idle_w", self.idle_w, 0.0..=1e3),
            ("thermal.read_j_per_gb", self.read_j_per_gb, 0.0..=1e3),
            ("thermal.program_j_per_gb", self.program_j_per_gb, 0.0..=1e3),
            ("thermal.rise_c_per_w", self.rise_c_per_w, 0.0..=1e3),
            ("thermal.time_constant_s", self.time_constant_s, 1e-3..=1e6),
            ("thermal.throttle_above_c", self.throttle_above_c, self.resume_below_c..=200.0),
            ("thermal.slowdown", self.slowdown, 1.0..=1e3),
        ] {
            within(&range, &[(field, value)])?;
        }
        Ok(())
    }
}

/// Nanoseconds of a number of microseconds.
pub(super) fn us(microseconds: f64) -> u64 {
    (microseconds * 1e3) as u64
}

/// Nanoseconds to move `bytes` at a rate in MB/s (10^6 bytes).
pub(super) fn transfer_ns(bytes: u64, mb_s: f64) -> u64 {
    (bytes as f64 * 1e3 / mb_s) as u64
}
