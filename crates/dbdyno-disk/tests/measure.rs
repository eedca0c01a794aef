//! `dbdyno-disk measure` on a folder of this machine and on a model.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const QUICK: [&str; 8] = ["--rounds", "2", "--step-ms", "10", "--region", "32M", "--fill-ms", "1"];

fn measure(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dbdyno-disk")).arg("measure").args(arguments).output().unwrap()
}

fn result_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_folder_is_measured_and_nothing_is_left_in_it() {
    let folder = folder("measured");
    let result = result_of(&measure(&[&["--on", folder.to_str().unwrap()], &QUICK[..]].concat()));
    let target = &result["targets"][0];
    assert_eq!(target["facts"]["region_bytes"], 32 << 20);
    assert_eq!(target["fill"]["bytes"], 32 << 20);
    for step in target["steps"].as_array().unwrap() {
        let rounds = step["rounds"].as_array().unwrap();
        let operations: u64 = rounds.iter().map(|round| round["operations"].as_u64().unwrap()).sum();
        assert_eq!(rounds.len(), 2);
        assert_eq!(step["latency_ns"]["count"], operations);
        assert!(operations >= 2 * step["depth"].as_u64().unwrap(), "{step}");
    }
    assert!(result["cpu_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn targets_take_turns_and_a_model_needs_no_disk() {
    let result = result_of(&measure(&[&["--model", "ssd-sata", "--model", "hdd-7200"], &QUICK[..]].concat()));
    let names: Vec<_> = result["targets"].as_array().unwrap().iter().map(|target| target["target"].as_str()).collect();
    assert_eq!(names, [Some("ssd-sata"), Some("hdd-7200")]);
    let p50 = |place: usize| result["targets"][place]["steps"][0]["latency_ns"]["p50"].as_u64().unwrap();
    assert!(p50(1) > 3 * p50(0), "a hard disk's flush waits for a turn: {} and {}", p50(0), p50(1));
}

#[test]
fn what_cannot_be_measured_is_named() {
    let folder = folder("refused");
    let file = folder.join("file");
    std::fs::write(&file, "mine").unwrap();
    for (place, code, message) in
        [("/nowhere", 1, "cannot measure /nowhere"), (file.to_str().unwrap(), 2, "neither a folder nor a block device")]
    {
        let refused = measure(&["--on", place]);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(code), "{text}");
        assert!(text.contains(message), "{text}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    std::fs::remove_dir_all(folder).unwrap();
}
