//! What is done to a disk on purpose: power cuts, faults; and the trace that shows it. Needs root and `/dev/fuse`, else
//! skips.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use common::{Disk, Folder};

const EIO: Option<i32> = Some(5);

fn open(disk: &Disk) -> std::fs::File {
    OpenOptions::new().read(true).write(true).open(disk.file()).unwrap()
}

fn read(file: &std::fs::File, offset: u64) -> Result<u8, Option<i32>> {
    let mut data = [0xEE; 4096];
    file.read_exact_at(&mut data, offset).map_err(|error| error.raw_os_error())?;
    Ok(data[0])
}

fn write(file: &std::fs::File, offset: u64, byte: u8) -> Result<(), Option<i32>> {
    file.write_all_at(&[byte; 4096], offset).map_err(|error| error.raw_os_error())
}

#[test]
fn a_power_cut_takes_what_was_not_flushed_and_the_disk_is_dead_until_power_on() {
    skip_if_impossible!();
    let disk = Disk::serve("cut", "hdd-7200", &["--mode", "instant"]);
    let file = open(&disk);
    for place in 0..200 {
        write(&file, place * 4096, 1).unwrap();
    }
    file.sync_data().unwrap();
    for place in 0..100 {
        write(&file, place * 4096, 2).unwrap();
    }
    let forced = OpenOptions::new().write(true).custom_flags(libc::O_DSYNC).open(disk.file()).unwrap();
    forced.write_all_at(&[3; 4096], 150 * 4096).unwrap();
    let cut = disk.tell(r#"{"op":"power-cut","seed":5,"sector_bytes":4096}"#);
    assert_eq!((cut["write_cache"].as_str(), cut["unflushed_sectors"].as_u64()), (Some("volatile"), Some(100)));
    assert_eq!((read(&file, 0), write(&file, 0, 9)), (Err(EIO), Err(EIO)));
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), EIO);
    assert_eq!(disk.tell(r#"{"op":"stats"}"#)["power"], "off");
    assert!(disk.ask(r#"{"op":"power-cut"}"#)["error"].as_str().unwrap().contains("power-on"));
    disk.tell(r#"{"op":"power-on"}"#);
    let after: Vec<u32> = (0..200).map(|place| read(&file, place * 4096).unwrap().into()).collect();
    assert_eq!(after[..100].iter().filter(|byte| **byte == 1).count() as u64, cut["lost_sectors"].as_u64().unwrap());
    assert!(after[100..150].iter().chain(&after[151..]).all(|byte| *byte == 1), "what was flushed is gone");
    assert_eq!(after[150], 3, "a forced write is gone");
    let stats = disk.tell(r#"{"op":"stats"}"#);
    assert_eq!((stats["errors"]["read"].as_u64(), stats["errors"]["flush"].as_u64()), (Some(1), Some(1)), "{stats}");
}

#[test]
fn a_drive_that_ignores_flush_loses_what_was_flushed() {
    skip_if_impossible!();
    let disk = Disk::serve("lies", "nvme(flush_ignored=true)", &["--mode", "instant"]);
    let file = open(&disk);
    for place in 0..200 {
        write(&file, place * 4096, 1).unwrap();
    }
    file.sync_data().unwrap();
    disk.tell(r#"{"op":"mode","mode":"model"}"#);
    for place in 0..100 {
        write(&file, place * 4096, 2).unwrap();
        file.sync_data().unwrap();
    }
    assert_eq!(disk.tell(r#"{"op":"stats"}"#)["flush_ignored"], true);
    let cut = disk.tell(r#"{"op":"power-cut","seed":5,"sector_bytes":4096}"#);
    assert_eq!(cut["unflushed_sectors"].as_u64(), Some(100), "{cut}");
    disk.tell(r#"{"op":"power-on"}"#);
    let after: Vec<u32> = (0..200).map(|place| read(&file, place * 4096).unwrap().into()).collect();
    let lost = after[..100].iter().filter(|byte| **byte == 1).count() as u64;
    assert!(lost > 0 && Some(lost) == cut["lost_sectors"].as_u64(), "{lost}, {cut}");
    assert!(after[100..].iter().all(|byte| *byte == 1), "what was prepared in instant mode and flushed is gone");
}

#[test]
fn a_power_cut_fails_what_is_in_flight() {
    skip_if_impossible!();
    let slow = Folder::new("slow-cut");
    let drive = slow.path("slow.toml");
    std::fs::write(&drive, "title = '100 s'\n[ideal]\nlatency_us = 100000000.0\n").unwrap();
    let disk = Disk::serve("in-flight", drive.to_str().unwrap(), &[]);
    let file = open(&disk);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|at| {
                scope.spawn({
                    let file = &file;
                    move || read(file, at * 4096)
                })
            })
            .collect();
        while disk.tell(r#"{"op":"stats"}"#)["in_flight"] != 4 {}
        assert_eq!(disk.tell(r#"{"op":"power-cut"}"#)["in_flight_failed"], 4);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() == Err(EIO)));
    });
    assert!(started.elapsed() < Duration::from_secs(99));
}

#[test]
fn faults_hit_what_they_are_for_and_are_listed() {
    skip_if_impossible!();
    let disk = Disk::serve("faults", "ideal", &[]);
    let file = open(&disk);
    write(&file, 8192, 7).unwrap();
    disk.tell(r#"{"op":"fault","spec":{"kind":"eio","target":"write","range_bytes":[8192,12288]}}"#);
    assert_eq!((write(&file, 8192, 8), write(&file, 4096, 8), read(&file, 8192)), (Err(EIO), Ok(()), Ok(7)));
    disk.tell(r#"{"op":"fault","spec":{"kind":"latency","target":"read","extra_ns":30000000,"every":2}}"#);
    for (hits, slow) in [(0, false), (1, true), (1, false), (2, true)] {
        let started = Instant::now();
        read(&file, 0).unwrap();
        assert!(!slow || started.elapsed() >= Duration::from_millis(30));
        assert_eq!(disk.tell(r#"{"op":"stats"}"#)["faults"][1]["hits"], hits);
    }
    disk.tell(r#"{"op":"mode","mode":"instant"}"#);
    let started = Instant::now();
    read(&file, 0).unwrap();
    read(&file, 0).unwrap();
    assert!(started.elapsed() >= Duration::from_millis(30), "a fault is no part of the model");
    let faults = &disk.tell(r#"{"op":"stats"}"#)["faults"];
    assert_eq!((faults[0]["kind"].as_str(), faults[0]["hits"].as_u64()), (Some("eio"), Some(1)), "{faults}");
    assert_eq!((faults[1]["seen"].as_u64(), faults[1]["hits"].as_u64()), (Some(6), Some(3)), "{faults}");
    disk.tell(r#"{"op":"fault-clear"}"#);
    assert_eq!(
        (write(&file, 8192, 8), disk.tell(r#"{"op":"stats"}"#)["faults"].clone()),
        (Ok(()), serde_json::json!([]))
    );
    assert!(disk.ask(r#"{"op":"fault","spec":{"kind":"latency"}}"#)["error"].as_str().unwrap().contains("extra_ns"));
}

#[test]
fn a_stuck_request_waits_for_the_end_of_the_fault() {
    skip_if_impossible!();
    let disk = Disk::serve("stuck", "ideal", &[]);
    let file = open(&disk);
    disk.tell(r#"{"op":"fault","spec":{"kind":"stuck","for_ns":200000000}}"#);
    let started = Instant::now();
    read(&file, 0).unwrap();
    assert!(started.elapsed() >= Duration::from_millis(190));
    disk.tell(r#"{"op":"fault","spec":{"kind":"stuck"}}"#);
    std::thread::scope(|scope| {
        let stuck = scope.spawn(|| read(&file, 0));
        while disk.tell(r#"{"op":"stats"}"#)["in_flight"] != 1 {}
        read(&file, 4096).unwrap();
        assert!(!stuck.is_finished());
        disk.tell(r#"{"op":"fault-clear"}"#);
        assert_eq!(stuck.join().unwrap(), Ok(0));
    });
}

#[test]
fn a_drive_that_is_gone_comes_back_without_what_was_not_flushed() {
    skip_if_impossible!();
    let disk = Disk::serve("gone", "hdd-7200", &["--mode", "instant"]);
    let file = open(&disk);
    write(&file, 0, 1).unwrap();
    file.sync_data().unwrap();
    disk.tell(r#"{"op":"fault-gone"}"#);
    assert_eq!((read(&file, 0), write(&file, 0, 2)), (Err(EIO), Err(EIO)));
    assert!(disk.ask(r#"{"op":"power-on"}"#)["error"].as_str().unwrap().contains("fault clear"));
    disk.tell(r#"{"op":"fault-clear"}"#);
    assert_eq!(read(&file, 0), Ok(1));
}

#[test]
fn a_trace_has_every_request() {
    skip_if_impossible!();
    let disk = Disk::serve("trace", "ideal", &[]);
    let file = open(&disk);
    let path = disk.folder.path("trace.csv");
    disk.tell(&serde_json::json!({"op": "trace", "file": path}).to_string());
    for place in 0..100 {
        write(&file, place * 8192, 1).unwrap();
    }
    file.sync_data().unwrap();
    read(&file, 8192).unwrap();
    let reply = disk.tell(r#"{"op":"trace-stop"}"#);
    assert_eq!((reply["records"].as_u64(), reply["dropped"].as_u64()), (Some(102), Some(0)), "{reply}");
    read(&file, 0).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 102);
    for (place, line) in lines[..100].iter().enumerate() {
        assert_eq!(line[4..], [&(place * 16).to_string(), "4096", "1", "write", "0"], "{line:?}");
        let times: Vec<u64> = line[..4].iter().map(|time| time.parse().unwrap()).collect();
        assert!(times.is_sorted(), "{line:?}");
    }
    assert_eq!((lines[100][7], lines[101][7]), ("flush", "read"));
    assert_eq!(disk.ask(r#"{"op":"trace-stop"}"#)["error"], "no trace is running");
}

#[test]
fn the_inside_of_a_drive_is_answered_alone_as_in_the_statistics() {
    skip_if_impossible!();
    let disk = Disk::serve("gauges", "nvme-980pro", &[]);
    write(&open(&disk), 0, 1).unwrap();
    let (gauges, stats) = (disk.tell(r#"{"op":"gauges"}"#), disk.tell(r#"{"op":"stats"}"#));
    assert!(gauges["gauges"]["temperature_c"].as_f64().unwrap() > 20.0, "{gauges}");
    assert_eq!(gauges["gauges"]["host_written_bytes"], 4096.0);
    let names = |value: &serde_json::Value| value["gauges"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&gauges), names(&stats));
}

#[test]
fn content_in_a_file_outlives_the_disk() {
    skip_if_impossible!();
    let folder = Folder::new("in-file-content");
    let image = folder.path("image");
    let more = ["--content", image.to_str().unwrap()];
    for round in 0..2 {
        let mut disk = Disk::serve(&format!("in-file-{round}"), "ideal", &more);
        let file = open(&disk);
        assert_eq!(read(&file, 1 << 20), Ok(round));
        write(&file, 1 << 20, round + 1).unwrap();
        drop(file);
        disk.tell(r#"{"op":"stop"}"#);
        disk.child.wait().unwrap();
    }
}

#[test]
fn answers_leave_earlier_by_the_path() {
    skip_if_impossible!();
    let disk = Disk::serve("path", "ideal", &[]);
    let file = open(&disk);
    let reads = |count: u64| (0..count).for_each(|place| assert!(read(&file, place * 4096).is_ok()));
    disk.tell(r#"{"op":"fault","spec":{"kind":"latency","extra_ns":5000000}}"#);
    for path_ns in [0_u64, 400_000] {
        disk.tell(&format!(r#"{{"op":"path","path_ns":{path_ns}}}"#));
        disk.tell(r#"{"op":"stats","reset":true}"#);
        reads(20);
        let stats = disk.tell(r#"{"op":"stats"}"#);
        assert_eq!(stats["path_ns"], path_ns);
        let taken = |figure: &str| stats["path_taken_ns"][figure].as_u64().unwrap();
        // The histogram resolves a thousandth.
        assert!(taken("min").abs_diff(path_ns) * 500 <= path_ns && taken("max").abs_diff(path_ns) * 500 <= path_ns);
        let least_ns = stats["service_ns"]["read"]["min"].as_u64().unwrap();
        assert!(least_ns * 1001 >= (5_000_000 - path_ns) * 1000, "{stats}");
    }
    // What is due at once can't leave any earlier.
    disk.tell(r#"{"op":"fault-clear"}"#);
    disk.tell(r#"{"op":"stats","reset":true}"#);
    reads(20);
    assert_eq!(disk.tell(r#"{"op":"stats"}"#)["path_taken_ns"]["max"], 0);
    let refused = disk.ask(r#"{"op":"path","path_ns":2000001}"#);
    assert!(refused["error"].as_str().unwrap().contains("at most 2000000"), "{refused}");
}
