//! The disk under a real loop device and a real filesystem. Needs root, `/dev/fuse` and loop devices, else skips.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Disk, run};

/// A loop device over a disk, detached in the end, when nothing holds it any more.
struct Loop(String);

impl Loop {
    fn attach(disk: &Disk, block_bytes: &str) -> Option<Self> {
        let output = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on", "-b", block_bytes])
            .arg(disk.file())
            .output()
            .ok()?;
        let device = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        if output.status.success() {
            return Some(Self(device));
        }
        eprintln!("skipped: losetup: {}", String::from_utf8_lossy(&output.stderr));
        None
    }

    fn setting(&self, path: &str) -> String {
        let name = self.0.trim_start_matches("/dev/");
        std::fs::read_to_string(format!("/sys/block/{name}/{path}")).unwrap().trim().to_owned()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
        // A program that starts beside it with mounts of its own has a copy of the filesystem's for a moment.
        let backing = PathBuf::from(format!("/sys/block/{}/loop/backing_file", self.0.trim_start_matches("/dev/")));
        wait_until(|| !backing.exists());
    }
}

/// A mounted filesystem, unmounted in the end.
struct Mounted(PathBuf);

impl Mounted {
    fn new(device: &Loop, disk: &Disk) -> Self {
        let path = disk.folder.path("filesystem");
        std::fs::create_dir_all(&path).unwrap();
        run("mount", &[&device.0, path.to_str().unwrap()]);
        Self(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A program that another thread is starting holds this one's open files for a moment, and it is busy.
        wait_until(|| Command::new("umount").arg(&self.0).status().is_ok_and(|status| status.success()));
    }
}

/// Tries until it is so, for a minute at most.
fn wait_until(mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn content(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 3 + at / 1000) as u8 ^ seed).collect()
}

#[test]
fn a_filesystem_on_it_keeps_its_files() {
    skip_if_impossible!();
    for (model, block_bytes) in [("ideal", "512"), ("ssd-sata", "4096"), ("nvme", "512"), ("hdd-7200", "4096")] {
        let disk = Disk::serve(&format!("loop-{model}"), model, &["--mode", "instant"]);
        let Some(device) = Loop::attach(&disk, block_bytes) else { return };
        assert_eq!(device.setting("queue/logical_block_size"), block_bytes);
        assert_eq!(device.setting("loop/dio"), "1");
        assert_ne!(device.setting("queue/discard_max_bytes"), "0", "the loop device passes discards on");
        run("mkfs.ext4", &["-q", &device.0]);
        disk.tell(r#"{"op":"mode","mode":"model"}"#);
        {
            let mounted = Mounted::new(&device, &disk);
            for seed in 0..20 {
                std::fs::write(mounted.0.join(format!("f{seed}")), content(seed, 150_000)).unwrap();
            }
            run("sync", &["-f", mounted.0.to_str().unwrap()]);
            std::fs::remove_file(mounted.0.join("f0")).unwrap();
            let refused = disk.ask(r#"{"op":"stop"}"#);
            assert_eq!(refused["ok"], false, "stopped under a filesystem");
        }
        let mounted = Mounted::new(&device, &disk);
        for seed in 1..20 {
            assert!(std::fs::read(mounted.0.join(format!("f{seed}"))).unwrap() == content(seed, 150_000), "{model}");
        }
        let content_bytes = disk.tell(r#"{"op":"stats"}"#)["content_bytes"].as_u64().unwrap();
        run("fstrim", &[mounted.0.to_str().unwrap()]);
        let stats = disk.tell(r#"{"op":"stats"}"#);
        assert!(
            stats["content_bytes"].as_u64().unwrap() <= content_bytes && stats["discards"].as_u64() > Some(0),
            "{stats}"
        );
        assert!(stats["flushes"].as_u64() > Some(0), "{stats}");
        drop(mounted);
        run("fsck.ext4", &["-fn", &device.0]);
    }
}

#[test]
fn a_restored_snapshot_is_the_filesystem_as_it_was() {
    skip_if_impossible!();
    let disk = Disk::serve("loop-restore", "ideal", &[]);
    {
        let Some(device) = Loop::attach(&disk, "4096") else { return };
        run("mkfs.ext4", &["-q", &device.0]);
        std::fs::write(Mounted::new(&device, &disk).0.join("kept"), content(1, 1 << 20)).unwrap();
    }
    disk.tell(r#"{"op":"snapshot","name":"prepared"}"#);
    for round in 0..3 {
        {
            let device = Loop::attach(&disk, "4096").unwrap();
            let mounted = Mounted::new(&device, &disk);
            assert!(std::fs::read(mounted.0.join("kept")).unwrap() == content(1, 1 << 20), "round {round}");
            assert!(!mounted.0.join("more").exists(), "round {round}");
            std::fs::write(mounted.0.join("kept"), content(2, 1 << 20)).unwrap();
            std::fs::write(mounted.0.join("more"), content(3, 1 << 20)).unwrap();
        }
        disk.tell(r#"{"op":"restore","name":"prepared"}"#);
    }
}

/// Each request counts from the block layer on, so the disk's time is the asked one there, however long the way is.
#[test]
fn requests_count_from_the_block_layer_on() {
    skip_if_impossible!();
    let disk = Disk::serve("loop-followed", "ideal", &[]);
    let Some(device) = Loop::attach(&disk, "4096") else { return };
    let follow = |place: &str| disk.tell(&format!(r#"{{"op":"follow","device":"{place}"}}"#));
    assert_eq!(follow("/dev/null")["reason"], "/dev/null is not a block device");
    let followed = follow(&device.0);
    if followed["followed"] == false {
        eprintln!("skipped: the host does not allow it: {}", followed["reason"]);
        return;
    }
    let dd = |arguments: &[&str]| run("dd", &[&["status=none"], arguments].concat());
    let (input, output) = (format!("if={}", device.0), format!("of={}", device.0));
    // The largest request of the block layer, of which FUSE makes two; a FLUSH; and one past the loop device.
    assert_eq!(device.setting("queue/max_sectors_kb"), "1280");
    disk.tell(r#"{"op":"fault","spec":{"kind":"latency","extra_ns":20000000}}"#);
    disk.tell(r#"{"op":"stats","reset":true}"#);
    let of_file = format!("if={}", disk.file().display());
    dd(&[&input, "of=/dev/null", "iflag=direct", "bs=1280K", "count=3"]);
    dd(&["if=/dev/zero", &output, "oflag=direct", "bs=4K", "count=20", "conv=fsync"]);
    let before = disk.tell(r#"{"op":"stats"}"#);
    dd(&[&of_file, "of=/dev/null", "iflag=direct", "bs=4K", "count=5"]);
    let stats = disk.tell(r#"{"op":"stats"}"#);
    let count = |stats: &serde_json::Value, name: &str| stats[name]["count"].as_u64().unwrap();
    assert_eq!(count(&before, "path_before_ns"), count(&before, "path_taken_ns"), "all have a start: {before}");
    assert!(before["reads"].as_u64() >= Some(6) && before["flushes"].as_u64() >= Some(1), "{before}");
    assert_eq!(count(&stats, "path_before_ns"), count(&before, "path_before_ns"), "no start past the loop device");
    assert!(count(&stats, "path_taken_ns") > count(&before, "path_taken_ns"));
    // What its way took has been taken off, and hardly more: nobody had an answer before the time.
    let figure = |name: &str, which: &str| before[name][which].as_u64().unwrap();
    assert!(figure("path_taken_ns", "min") > 0, "{before}");
    assert!(figure("path_early_ns", "max") < 1_000_000, "{before}");
    assert!(figure("path_before_ns", "max") < 1_000_000_000, "{before}");
    // The way back is followed for each size that came, and for no other.
    let sizes = |kind: &str| before["path_after_ns"][kind].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(sizes("write"), ["4096"], "{before}");
    assert!(sizes("read").contains(&"more".to_owned()), "1 MiB, as FUSE has it: {before}");
    assert!(before["path_after_ns"]["without_data"].as_u64() < Some(60_000), "a FLUSH: {before}");
}

/// On a host that has something else to do the completion thread sleeps; it never spins more than its budget, and short
/// waits.
#[test]
fn waits_are_spun_within_the_budget() {
    skip_if_impossible!();
    let disk = Disk::serve("loop-budget", "ideal(latency_us=1000)", &[]);
    let Some(device) = Loop::attach(&disk, "4096") else { return };
    let began = Instant::now();
    run("dd", &["status=none", &format!("if={}", device.0), "of=/dev/null", "iflag=direct", "bs=4K", "count=1500"]);
    let seconds = began.elapsed().as_secs_f64();
    let stats = disk.tell(r#"{"op":"stats"}"#);
    let (spun, most) = (stats["spun_seconds"].as_f64().unwrap(), stats["spin_share_max"].as_f64().unwrap());
    assert!((0.05..=0.25).contains(&most), "{stats}");
    // Saved up for a second at most; and less than 8 us a wait where a processor idles.
    assert!(spun > 0.0 && spun <= 0.25 * (seconds + 1.0) + 1_600.0 * 8e-6, "{spun} s of {seconds} s: {stats}");
}
