//! `[cloud]` of a drive file.

use serde::Deserialize;

use crate::limits::{above_zero, fields, within};

const GIB: f64 = (1_u64 << 30) as f64;

/// The numbers that make a cloud volume. Each field's unit is in its name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CloudSpec {
    /// The largest volume, bytes.
    pub capacity_bytes: u64,
    /// Size of the volume as it is paid for, GiB, where rates depend on it; without it that of the disk.
    pub volume_gib: Option<f64>,
    /// Provisioned operations a second; either this or `iops_per_gib`.
    pub iops: Option<f64>,
    /// Baseline operations a second for each GiB.
    pub iops_per_gib: Option<f64>,
    /// Least baseline.
    #[serde(default)]
    pub iops_min: f64,
    /// Largest baseline, or the most that can be provisioned.
    pub iops_max: f64,
    /// The most that can be provisioned for each GiB; looked at where `volume_gib` is given.
    pub iops_per_gib_max: Option<f64>,
    /// A limit of its own for writes; without it reads and writes share one.
    pub write_iops: Option<f64>,
    /// Operations a second while there are credits; 0: no bursts.
    #[serde(default)]
    pub burst_iops: f64,
    /// Credits at the start, and the most there can be; an operation costs one, the baseline earns them.
    #[serde(default)]
    pub burst_credits: f64,
    /// Throughput limit, MiB/s.
    pub throughput_mib_s: f64,
    /// A further limit: this for each operation a second.
    pub throughput_mib_s_per_iops: Option<f64>,
    /// Volumes up to this size, GiB, have `small_volume_mib_s`.
    #[serde(default)]
    pub small_volume_gib: f64,
    /// See `small_volume_gib`, MiB/s.
    pub small_volume_mib_s: Option<f64>,
    /// A command counts as one operation for each started piece of this size, bytes.
    pub io_max_bytes: u64,
    /// Whether adjacent sequential commands that are outstanding together share operations.
    pub merge: bool,
    /// What an idle volume may save up of its limits, ms.
    pub bucket_ms: f64,
    /// How many of the seconds fall short of 90 % of the limit.
    pub shortfall_probability: f64,
    /// What is delivered at worst in such a second, as a part of the limit.
    pub shortfall_least: f64,
    /// Median latency of a read beyond the wait for the limits and the transfer, us.
    pub read_us: f64,
    /// The same for a write.
    pub write_us: f64,
    /// Deviation of the latency's logarithm: the distribution is lognormal.
    pub latency_sigma: f64,
    /// What FLUSH and discard take, us.
    pub flush_us: f64,
    /// Rate at which one command's data is transferred, MB/s.
    pub link_mb_s: f64,
}

impl CloudSpec {
    /// Baseline or provisioned operations a second, of a disk of `size_bytes`.
    pub(super) fn iops(&self, size_bytes: u64) -> f64 {
        let baseline = self.iops_per_gib.unwrap_or(0.0) * self.volume_gib(size_bytes);
        // Not `clamp`, which panics where a file's bounds are the wrong way round.
        self.iops.unwrap_or(baseline.max(self.iops_min).min(self.iops_max))
    }

    /// Throughput limit, MiB/s, of a disk of `size_bytes`.
    pub(super) fn throughput_mib_s(&self, size_bytes: u64) -> f64 {
        let small = self.volume_gib(size_bytes) <= self.small_volume_gib;
        let limit = self.small_volume_mib_s.filter(|_| small).unwrap_or(self.throughput_mib_s);
        let by_iops = self.throughput_mib_s_per_iops.map_or(f64::INFINITY, |each| each * self.iops(size_bytes));
        limit.min(by_iops)
    }

    fn volume_gib(&self, size_bytes: u64) -> f64 {
        self.volume_gib.unwrap_or(size_bytes as f64 / GIB)
    }

    /// Refuses numbers the model cannot work with, naming the first.
    pub(crate) fn check(&self) -> Result<(), String> {
        above_zero(&fields! { self; capacity_bytes, iops_max, throughput_mib_s, io_max_bytes, link_mb_s })?;
        let given = [
            ("volume_gib", self.volume_gib),
            ("iops", self.iops),
            ("iops_per_gib", self.iops_per_gib),
            ("iops_per_gib_max", self.iops_per_gib_max),
            ("write_iops", self.write_iops),
            ("throughput_mib_s_per_iops", self.throughput_mib_s_per_iops),
            ("small_volume_mib_s", self.small_volume_mib_s),
        ];
        above_zero(&given.into_iter().filter_map(|(field, value)| Some((field, value?))).collect::<Vec<_>>())?;
        within(
            &(0.0..=1e9),
            &fields! { self;
                iops_min, burst_iops, small_volume_gib, bucket_ms, read_us, write_us, flush_us
            },
        )?;
        within(&(0.0..=1e15), &fields! { self; burst_credits })?;
        within(&(0.0..=1.0), &fields! { self; shortfall_probability })?;
        within(&(0.01..=0.9), &fields! { self; shortfall_least })?;
        within(&(0.0..=3.0), &fields! { self; latency_sigma })?;
        self.check_iops()
    }

    fn check_iops(&self) -> Result<(), String> {
        let Some(iops) = self.iops else {
            return match self.iops_per_gib {
                Some(_) => Ok(()),
                None => Err("iops is missing (or iops_per_gib)".into()),
            };
        };
        if self.iops_per_gib.is_some() {
            return Err(format!("iops = {iops} cannot be given together with iops_per_gib"));
        }
        if iops > self.iops_max {
            return Err(format!("iops = {iops} is more than iops_max = {}", self.iops_max));
        }
        if let (Some(gib), Some(each)) = (self.volume_gib, self.iops_per_gib_max)
            && iops > gib * each
        {
            let most = gib * each;
            return Err(format!("iops = {iops} is more than the {most} a volume of volume_gib = {gib} may have"));
        }
        Ok(())
    }
}
