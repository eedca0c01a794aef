//! The disk as a program: what it serves, what it is asked for, how it ends. Needs root and `/dev/fuse`, else skips.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Disk, Folder, is_mounted, run, serve_command};
use rustix::fs::FallocateFlags;
use rustix::process::Signal;

fn open(disk: &Disk) -> std::fs::File {
    OpenOptions::new().read(true).write(true).open(disk.file()).unwrap()
}

fn bytes(file: &std::fs::File, offset: u64, length: usize) -> Vec<u8> {
    let mut data = vec![0xEE; length];
    file.read_exact_at(&mut data, offset).unwrap();
    data
}

#[test]
fn content_is_kept_snapshot_and_restored() {
    skip_if_impossible!();
    let disk = Disk::serve("content", "ideal", &[]);
    assert_eq!(disk.ready["ready"], true);
    assert_eq!(disk.ready["file"], disk.file().to_str().unwrap());
    let file = open(&disk);
    assert_eq!(file.metadata().unwrap().len(), 256 << 20);
    assert_eq!(bytes(&file, 0, 4096), [0; 4096]);

    let data: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 253) as u8).collect();
    file.write_all_at(&data, 1_234_567).unwrap();
    assert_eq!(bytes(&file, 1_234_567, data.len()), data);
    disk.tell(r#"{"op":"snapshot","name":"a"}"#);
    file.write_all_at(&[9; 8192], 2_000_000).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 1 << 20, 16 << 20).unwrap();
    assert_eq!(bytes(&file, 2_000_000, 100), [0; 100]);
    disk.tell(r#"{"op":"restore","name":"a"}"#);
    assert_eq!(bytes(&file, 1_234_567, data.len()), data);
    disk.tell(r#"{"op":"clear"}"#);
    assert_eq!(bytes(&file, 1_234_567, 4096), [0; 4096]);
    file.sync_data().unwrap();

    let stats = disk.tell(r#"{"op":"stats","reset":true}"#);
    assert_eq!((stats["flushes"].as_u64(), stats["discards"].as_u64()), (Some(1), Some(1)));
    assert_eq!(stats["write_bytes"].as_u64(), Some(3_000_000 + 8192));
    assert_eq!(stats["content_bytes"].as_u64(), Some(0));
    assert!(stats["held_bytes"].as_u64() >= Some(3_000_000), "{stats}");
    assert!(stats["service_ns"]["read"]["p99"].as_u64() > Some(0), "{stats}");
    assert_eq!(disk.tell(r#"{"op":"stats"}"#)["reads"], 0);
    assert!(file.set_len(1).is_err(), "the size is fixed");
}

#[test]
fn the_model_decides_when_and_instant_mode_does_not_wait() {
    skip_if_impossible!();
    let slow = Folder::new("slow-drive");
    let drive = slow.path("slow.toml");
    std::fs::write(&drive, "title = '20 ms'\n[ideal]\nlatency_us = 20000.0\n").unwrap();
    let disk = Disk::serve("time", drive.to_str().unwrap(), &["--mode", "instant"]);
    let file = open(&disk);
    let timed = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let read = || drop(bytes(&file, 0, 4096));
    // The shortest of many: a busy host makes others longer.
    let shortest = || (0..20).map(|_| timed(&read)).min().unwrap();
    assert!(shortest() < Duration::from_millis(20));
    disk.tell(r#"{"op":"mode","mode":"model"}"#);
    for work in [&read as &dyn Fn(), &|| file.sync_all().unwrap(), &|| file.write_all_at(&[1; 4096], 0).unwrap()] {
        assert!(timed(work) >= Duration::from_millis(20));
    }
    let lateness = &disk.tell(r#"{"op":"stats"}"#)["lateness_ns"];
    assert_eq!(lateness["count"], 3, "instant mode has no due times: {lateness}");
    disk.tell(r#"{"op":"model","name":"ideal","seed":3}"#);
    assert!(shortest() < Duration::from_millis(20));
}

#[test]
fn content_beyond_the_limit_is_refused() {
    skip_if_impossible!();
    let disk = Disk::serve("limit", "ideal", &["--max-content", "1MiB"]);
    let file = open(&disk);
    file.write_all_at(&vec![1; 1 << 20], 0).unwrap();
    let error = file.write_all_at(&[1; 4096], 8 << 20).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::NOSPC.raw_os_error()));
    assert_eq!(disk.tell(r#"{"op":"stats"}"#)["enospc_errors"], 1);
}

#[test]
fn nonsense_on_the_socket_harms_nothing() {
    skip_if_impossible!();
    let disk = Disk::serve("nonsense", "ideal", &[]);
    for request in [
        "",
        "{}",
        "[]",
        "null",
        "\"op\"",
        "{\"op\":\"explode\"}",
        "{\"op\":\"ping\",\"extra\":1}",
        "{\"op\":\"mode\",\"mode\":\"fast\"}",
        "{\"op\":\"model\",\"name\":\"hdd-7201\"}",
        "{\"op\":\"model\",\"name\":5}",
        "{\"op\":\"restore\",\"name\":\"never\"}",
        "{\"op\":\"stats\",\"reset\":\"yes\"}",
        "\u{0}\u{1}\u{fffd}",
    ] {
        if !request.is_empty() {
            let reply = disk.ask(request);
            assert_eq!(reply["ok"], false, "{request}: {reply}");
            assert!(reply["error"].as_str().is_some_and(|error| error.len() > 10), "{reply}");
        }
    }
    let mut random = 1_u64;
    for length in 0..300 {
        let noise: Vec<u8> = (0..length * 7)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8
            })
            .collect();
        // The disk may hang up in the middle of it.
        let _ = disk.connect().write_all(&noise);
    }
    let mut endless = disk.connect();
    let _ = endless.write_all(&vec![b'['; 1 << 20]);
    disk.tell(r#"{"op":"ping"}"#);
    assert!(disk.ask(r#"{"op":"model","name":"hdd-7201"}"#)["error"].as_str().unwrap().contains("hdd-7200"));
}

#[test]
fn stop_and_signals_leave_nothing() {
    type End = fn(&Disk);
    skip_if_impossible!();
    let ends: [(&str, End); 3] = [
        ("stop", |disk| drop(disk.tell(r#"{"op":"stop"}"#))),
        ("term", |disk| disk.signal(Signal::TERM)),
        ("int", |disk| disk.signal(Signal::INT)),
    ];
    for (name, end) in ends {
        let mut disk = Disk::serve(name, "hdd-7200", &[]);
        end(&disk);
        assert!(disk.child.wait().unwrap().success(), "{name}");
        assert!(!is_mounted(&disk.mount()) && !disk.folder.path("socket").exists(), "{name}");
    }
}

#[test]
fn stop_is_refused_while_in_use_unless_forced() {
    skip_if_impossible!();
    let mut disk = Disk::serve("in-use", "ideal", &[]);
    let file = open(&disk);
    let reply = disk.ask(r#"{"op":"stop"}"#);
    assert!(reply["error"].as_str().is_some_and(|error| error.contains("in use")), "{reply}");
    file.write_all_at(&[1; 4096], 0).unwrap();
    disk.tell(r#"{"op":"stop","force":true}"#);
    assert!(disk.child.wait().unwrap().success());
    assert!(!is_mounted(&disk.mount()) && !disk.folder.path("socket").exists());
    drop(file);
}

#[test]
fn a_killed_disk_leaves_a_mount_that_a_lazy_unmount_removes() {
    skip_if_impossible!();
    let mut disk = Disk::serve("killed", "ideal", &[]);
    disk.child.kill().unwrap();
    disk.child.wait().unwrap();
    assert!(is_mounted(&disk.mount()));
    std::fs::remove_file(disk.folder.path("socket")).unwrap();
    let refused = serve_command(&disk.folder, "ideal", &[]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("umount -l"), "{refused:?}");
    run("umount", &["-l", disk.mount().to_str().unwrap()]);
    assert!(!is_mounted(&disk.mount()));
}

#[test]
fn mistakes_are_named_and_exit_2() {
    skip_if_impossible!();
    let disk = Disk::serve("mistakes", "ideal", &[]);
    let other = Folder::new("mistakes-other");
    std::fs::write(other.path("socket"), "").unwrap();
    let refusal = |folder: &Folder, model: &str, more: &[&str]| {
        let mut child =
            serve_command(folder, model, more).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{message}");
        message
    };
    assert!(refusal(&disk.folder, "ideal", &[]).contains("mounted there already"));
    assert!(refusal(&other, "ideal", &[]).contains("no process listens there; remove it with: rm "));
    let free = Folder::new("mistakes-free");
    assert!(refusal(&free, "ssd-sta", &[]).contains("the models are ssd-sata"));
    assert!(refusal(&free, "ideal", &["--size", "4097"]).contains("not a positive multiple"));
    assert!(refusal(&free, "hdd-15k", &["--size", "1T"]).contains("larger than the drive"));
    std::fs::remove_dir(free.path("mount")).unwrap();
    assert!(refusal(&free, "ideal", &[]).contains("mkdir -p"));
    assert!(!free.path("socket").exists(), "nothing may be left behind");
    disk.tell(r#"{"op":"ping"}"#);
}
