//! `[ssd]` of a drive file.

use serde::Deserialize;

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
    /// Time FLUSH takes beyond writing the buffer (mapping tables), if there was anything to write, microseconds.
    pub flush_us: f64,
    /// The host link, each way, MB/s.
    pub link_mb_s: f64,
    /// Firmware: latency it adds to every command, microseconds.
    pub firmware_us: f64,
    /// Firmware: time between two commands it can start, microseconds (the inverse of the highest IOPS).
    pub command_us: f64,
    /// Flash channels, each a shared bus.
    pub channels: usize,
    /// Dies on each channel that can read or program at the same time.
    pub dies_per_channel: usize,
    /// One channel's transfer rate, MB/s.
    pub channel_mb_s: f64,
    /// What one die reads at once, bytes.
    pub page_bytes: u64,
    /// Time from cell to page register, microseconds.
    pub read_us: f64,
    /// What one die programs at once (all its planes), bytes.
    pub program_bytes: u64,
    /// Time to program that, microseconds.
    pub program_us: f64,
    /// DRAM for writes not yet programmed, bytes.
    pub buffer_bytes: u64,
    /// Reads a die may serve in a row while programs wait for it.
    pub reads_before_program: u32,
}

impl SsdSpec {
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Refuses numbers the model cannot work with, naming the first.
    pub(crate) fn check(&self) -> Result<(), String> {
        let positive = [
            ("link_mb_s", self.link_mb_s),
            ("channel_mb_s", self.channel_mb_s),
            ("capacity_bytes", self.capacity_bytes as f64),
            ("queue_depth", self.queue_depth as f64),
            ("channels", self.channels as f64),
            ("dies_per_channel", self.dies_per_channel as f64),
            ("page_bytes", self.page_bytes as f64),
            ("program_bytes", self.program_bytes as f64),
            ("buffer_bytes", self.buffer_bytes as f64),
        ];
        if let Some((field, value)) = positive.iter().find(|(_, value)| !(*value > 0.0 && value.is_finite())) {
            return Err(format!("{field} = {value} is not above 0"));
        }
        let times = [
            ("flush_us", self.flush_us),
            ("firmware_us", self.firmware_us),
            ("command_us", self.command_us),
            ("read_us", self.read_us),
            ("program_us", self.program_us),
        ];
        if let Some((field, value)) = times.iter().find(|(_, value)| !(0.0..=1e9).contains(value)) {
            return Err(format!("{field} = {value} is not between 0 and 1e9"));
        }
        if self.page_bytes < 512 {
            return Err(format!("page_bytes = {} is below 512", self.page_bytes));
        }
        Ok(())
    }
}

/// Nanoseconds of a number of microseconds.
pub(crate) fn us(microseconds: f64) -> u64 {
    (microseconds * 1e3) as u64
}

/// Nanoseconds to move `bytes` at a rate in MB/s (10^6 bytes).
pub(crate) fn transfer_ns(bytes: u64, mb_s: f64) -> u64 {
    (bytes as f64 * 1e3 / mb_s) as u64
}
