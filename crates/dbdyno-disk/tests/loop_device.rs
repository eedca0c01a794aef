//! The disk under a real loop device and a real filesystem. Needs root, `/dev/fuse` and loop devices, else skips.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::{Disk, run};

/// A loop device over a disk, detached in the end.
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
        let _ = Command::new("umount").arg(&self.0).status();
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
        let held = disk.tell(r#"{"op":"stats"}"#)["content_bytes"].as_u64().unwrap();
        run("fstrim", &[mounted.0.to_str().unwrap()]);
        let stats = disk.tell(r#"{"op":"stats"}"#);
        assert!(stats["content_bytes"].as_u64().unwrap() <= held && stats["discards"].as_u64() > Some(0), "{stats}");
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
