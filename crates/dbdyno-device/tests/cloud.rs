//! Cloud volumes against what their provider documents, in virtual time.

#![allow(clippy::unwrap_used)]

mod bench;

use bench::Bench;
use dbdyno_device::{Kind, WriteCache, model};

const SIZE_BYTES: u64 = 8 << 30;
const MIB: u64 = 1 << 20;

/// Seconds that a full burst lasts. One command of 16 MiB is 64 operations, which keeps the test short.
fn burst_seconds(volume_gib: u64, seconds: u64) -> usize {
    let name = format!(
        "ebs-gp2(volume_gib={volume_gib}, iops_min=0, throughput_mib_s=1e6, small_volume_mib_s=1e6, link_mb_s=1e6)"
    );
    let rates = Bench::new(&name, SIZE_BYTES, 1).per_second(Kind::Read, 16 * MIB, 64, seconds);
    let half_way = u64::midpoint(3000, 3 * volume_gib);
    let slow = |five: &[u64]| five.iter().all(|commands| commands * 64 < half_way);
    rates.windows(5).position(slow).unwrap()
}

#[test]
fn a_gp2_burst_lasts_as_long_as_its_credits() {
    for (volume_gib, seconds) in [(1, 1801.8), (100, 2000.0), (500, 3600.0)] {
        let lasted = burst_seconds(volume_gib, seconds as u64 + 200) as f64;
        assert!((lasted / seconds - 1.0).abs() < 0.01, "{volume_gib} GiB: {lasted} s, not {seconds}");
    }
}

#[test]
fn a_gp2_volume_earns_credits_again() {
    let mut bench = Bench::new("ebs-gp2(burst_credits=30000)", SIZE_BYTES, 1);
    let rates = bench.per_second(Kind::Read, 4096, 32, 60);
    assert!(rates[..10].iter().all(|rate| *rate > 1400), "{rates:?}");
    assert!(rates[20..].iter().all(|rate| (45..=105).contains(rate)), "{rates:?}");
    assert!(bench.gauge("credits_io") < 100.0);
    bench.now_ns += 100_000_000_000;
    bench.request_ns(Kind::Flush, 0, 0);
    assert!((bench.gauge("credits_io") - 10_000.0).abs() < 150.0, "{}", bench.gauge("credits_io"));
}

#[test]
fn operations_are_counted_exactly() {
    let operations = |commands: Vec<(u64, u64)>| {
        let mut bench = Bench::new("ebs-gp3", SIZE_BYTES, 1);
        for (offset_bytes, length_bytes) in commands {
            bench.submit(Kind::Write, offset_bytes, length_bytes);
        }
        bench.gauge("operations_io") as u64
    };
    assert_eq!(operations(vec![(0, MIB)]), 4);
    assert_eq!(operations((0..8).map(|i| (i << 15, 1 << 15)).collect()), 1);
    assert_eq!(operations((0..8).map(|i| (i << 25, 1 << 15)).collect()), 8);
}

#[test]
fn provisioned_rates_are_kept_as_often_as_promised() {
    for (drive, promised) in [("ebs-gp3(iops=500)", 0.99), ("ebs-io1(iops=500)", 0.999), ("ebs-io2(iops=500)", 0.999)] {
        let rates = Bench::new(drive, SIZE_BYTES, 1).per_second(Kind::Read, 4096, 32, 3000);
        let kept = rates.iter().filter(|rate| **rate >= 450).count() as f64 / rates.len() as f64;
        // Three deviations of the count of bad seconds.
        let slack = 3.0 * ((1.0 - promised) / 3000.0_f64).sqrt();
        assert!(kept < 1.0 && (kept - promised).abs() < slack, "{drive}: {kept}");
        assert!(rates[1..].iter().all(|rate| *rate <= 506), "{drive}: more than provisioned");
    }
}

#[test]
fn latencies_are_of_the_promised_size() {
    let mean_us = |drive: &str, kind| {
        let mut bench = Bench::new(drive, SIZE_BYTES, 1);
        let times: Vec<u64> =
            (0..2000_u64).map(|index| bench.request_ns(kind, (index * 37 % 1000) << 20, 16_384)).collect();
        (times.iter().sum::<u64>() as f64 / 2e6, times.iter().max().copied().unwrap() as f64 / 1e3)
    };
    for kind in [Kind::Read, Kind::Write] {
        for drive in ["ebs-gp2(volume_gib=1000)", "ebs-gp3", "ebs-io1"] {
            let (mean, max) = mean_us(drive, kind);
            assert!((500.0..2_000.0).contains(&mean) && max < 10_000.0, "{drive}: mean {mean} us, max {max} us");
        }
        let (mean, _) = mean_us("ebs-io2", kind);
        assert!((200.0..500.0).contains(&mean), "ebs-io2: {mean} us");
        assert!(mean_us("nvme-local", kind).0 < 120.0);
    }
}

#[test]
fn throughput_is_limited_too() {
    for (drive, mib_s) in [
        ("ebs-gp3(shortfall_probability=0)", 125),
        ("ebs-gp3(shortfall_probability=0, throughput_mib_s=500)", 500),
        ("ebs-gp2(shortfall_probability=0, volume_gib=100)", 128),
        ("ebs-gp2(shortfall_probability=0, volume_gib=500)", 250),
        ("raid0(ebs-gp3(shortfall_probability=0), 4, 256KiB)", 500),
    ] {
        let rates = Bench::new(drive, SIZE_BYTES, 1).per_second(Kind::Write, MIB, 32, 5);
        assert!(rates[1..].iter().all(|rate| rate.abs_diff(mib_s) * 20 <= mib_s), "{drive}: {rates:?}");
    }
}

#[test]
fn reads_and_writes_of_instance_storage_have_limits_of_their_own() {
    let rate = |kind| Bench::new("nvme-local", SIZE_BYTES, 1).per_second(kind, 4096, 128, 2)[1];
    assert!(rate(Kind::Read).abs_diff(100_125) < 2_000, "{}", rate(Kind::Read));
    assert!(rate(Kind::Write).abs_diff(35_000) < 700, "{}", rate(Kind::Write));
}

#[test]
fn acknowledged_writes_are_durable() {
    assert_eq!(model("ebs-gp3", SIZE_BYTES, 1).unwrap().write_cache(), WriteCache::None);
}

#[test]
fn what_cannot_be_provisioned_is_refused() {
    for (drive, reason) in [
        ("ebs-gp3(iops=90000)", "more than iops_max"),
        ("ebs-io1(iops=10000, volume_gib=100)", "more than the 5000"),
        ("ebs-io1(iops=0)", "iops = 0 is not above 0"),
        ("ebs-gp2(iops=100)", "together with iops_per_gib"),
        ("ebs-gp2(iop=100)", "unknown field `iop`"),
    ] {
        let message = model(drive, SIZE_BYTES, 1).err().unwrap().to_string();
        assert!(message.contains(reason) && message.contains(drive), "{message}");
    }
}
