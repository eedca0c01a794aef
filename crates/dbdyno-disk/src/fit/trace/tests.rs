//! What a drive did must give back what its drive file says, as far as a trace shows it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use dbdyno_common::random::Random;
use dbdyno_device::Kind;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::virtual_drive::VirtualDrive;

/// A host that keeps a trace, a CSV with names.
struct Host {
    drive: VirtualDrive,
    size_bytes: u64,
    random: Random,
    lines: String,
}

impl Host {
    fn of(drive: &str, size_bytes: u64, seed: u64) -> Self {
        let model = dbdyno_device::model(drive, size_bytes, seed).unwrap();
        let lines = "arrival_ns,kind,offset_bytes,size_bytes,response_ns\n".to_owned();
        Self { drive: VirtualDrive::new(model), size_bytes, random: Random::new(seed), lines }
    }

    fn place(&mut self) -> u64 {
        self.random.below(self.size_bytes / 4096 - 512) * 4096
    }

    /// Requests with so many outstanding; `next` says what and where.
    fn load(&mut self, depth: usize, count: u64, mut next: impl FnMut(&mut Self, u64) -> (Kind, u64, u64)) {
        let (mut sent, mut outstanding) = (0, HashMap::new());
        while sent < count || !outstanding.is_empty() {
            while sent < count && outstanding.len() < depth {
                let (kind, offset, bytes) = next(self, sent);
                let id = self.drive.submit(kind, offset, bytes);
                outstanding.insert(id, (self.drive.now_ns(), kind, offset, bytes));
                sent += 1;
            }
            for done in self.drive.wait() {
                let (sent_ns, kind, offset, bytes) = outstanding.remove(&done.id).unwrap();
                let kind = match kind {
                    Kind::Read => "read",
                    Kind::Write | Kind::Discard => "write",
                    Kind::Flush => "flush",
                };
                let _ = writeln!(self.lines, "{sent_ns},{kind},{offset},{bytes},{}", done.at_ns - sent_ns);
            }
        }
    }

    fn one(&mut self, kind: Kind, offset: u64, bytes: u64, pause_ns: u64) {
        self.load(1, 1, |_, _| (kind, offset, bytes));
        self.drive.pause(pause_ns);
    }

    /// Single reads at random places, a third of them at few.
    fn single_reads(&mut self, count: u64) {
        let hot: Vec<u64> = (0..60).map(|_| self.place()).collect();
        for index in 0..count {
            let place = if index % 3 == 0 { hot[self.random.below(60) as usize] } else { self.place() };
            let pause_ns = self.random.below(2_000_000);
            self.one(Kind::Read, place, 4096, pause_ns);
        }
    }

    fn sequential_reads(&mut self) {
        for part in 0..9 {
            let from = self.size_bytes / 9 * part / 4096 * 4096;
            self.load(2, 128, |_, index| (Kind::Read, from + (index << 18), 1 << 18));
        }
    }

    /// Reads that continue one a while later, of two sizes.
    fn continued_reads(&mut self) {
        for index in 0..120 {
            let place = self.place();
            self.one(Kind::Read, place, 16_384, 30_000_000);
            self.one(Kind::Read, place + 16_384, if index % 2 == 0 { 4096 } else { 131_072 }, 0);
        }
    }

    fn single_writes(&mut self, count: u64) {
        for _ in 0..count {
            let place = self.place();
            self.one(Kind::Write, place, 4096, 40_000_000);
        }
    }

    /// A few writes and a FLUSH, and one that has nothing to write.
    fn flushes(&mut self, count: u64) {
        for _ in 0..count {
            self.load(1, 3, |host, _| (Kind::Write, host.place(), 4096));
            self.one(Kind::Flush, 0, 0, 5_000_000);
            self.one(Kind::Flush, 0, 0, 5_000_000);
        }
    }

    fn fitted(self, name: &str) -> Found {
        let path = written(name, &self.lines);
        let read = requests::read(std::slice::from_ref(&path), None, Some(self.size_bytes));
        std::fs::remove_file(path).unwrap();
        of_requests(&read.unwrap(), "x", (Some(self.size_bytes), 3), &mut |_| Ok(())).unwrap()
    }
}

fn written(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dbdyno-fit-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

impl Found {
    fn figure(&self, field: &str) -> Value {
        self.file.figures().into_iter().find(|figure| figure["field"] == field).unwrap()
    }

    /// A figure that the trace shows.
    fn shown(&self, field: &str) -> f64 {
        let figure = self.figure(field);
        assert_ne!(figure["source"], "default", "{figure}");
        figure["text"].as_str().unwrap().parse().unwrap()
    }

    fn is_default(&self, field: &str) -> bool {
        self.figure(field)["source"] == "default"
    }

    /// How far the model of the file is off what the trace says, at the most.
    fn farthest(&self, word: &str) -> f64 {
        let checks = self.checks.iter().filter(|check| check["what"].as_str().unwrap().contains(word));
        let ratio = |check: &Value| check["model"].as_f64().unwrap() / check["drive"]["value"].as_f64().unwrap();
        let logs: Vec<f64> = checks.map(|check| ratio(check).ln().abs()).collect();
        assert!(!logs.is_empty(), "{word}: {:?}", self.checks);
        logs.into_iter().fold(0.0, f64::max)
    }

    /// The seek over so many bytes, ms, by the seek table's rows of cylinders.
    fn seek_ms(&self, bytes: f64) -> f64 {
        let rate = f64::midpoint(self.shown("outer_mb_s"), self.shown("inner_mb_s"));
        let cylinders = bytes / (4.0 * rate * 60e3 / self.shown("rpm") * 1e3);
        let table = self.figure("seek_table")["text"].as_str().unwrap().replace('\n', " ");
        let numbers: Vec<f64> = self.figure("seek_table")["text"]
            .as_str()
            .unwrap()
            .lines()
            .flat_map(|line| line.split('#').next().unwrap_or_default().split([',', '[', ']', ' ']))
            .filter_map(|word| word.parse().ok())
            .collect();
        let rows: Vec<[f64; 2]> = numbers.chunks_exact(2).map(|row| [row[0], row[1]]).collect();
        let after = rows.iter().position(|row| row[0] >= cylinders).unwrap_or_else(|| panic!("{cylinders}: {table}"));
        let [[x0, y0], [x1, y1]] = [rows[after - 1], rows[after]];
        y0 + (y1 - y0) * (cylinders - x0) / (x1 - x0)
    }
}

/// What `hdd-7200` says of a seek, with what it takes to choose, ms; tracks of 200 MB/s everywhere, four heads.
fn seek_of_7200(bytes: f64, turn_ms: f64) -> f64 {
    let cylinders = bytes / (4.0 * 200.0 * turn_ms * 1e3);
    0.3 + if cylinders < 40_000.0 { 1.0 + 0.053 * cylinders.sqrt() } else { 9.75 + 0.000_038 * cylinders }
}

const EVEN_7200: &str = "hdd-7200(outer_mb_s=200,inner_mb_s=200";

#[test]
fn a_disk_gives_back_what_its_trace_shows() {
    let size = 1000 << 30;
    let mut host = Host::of(&format!("{EVEN_7200},queue_depth=8,age_weight=0.1,flush_ms=6.0)"), size, 5);
    host.single_reads(4000);
    host.sequential_reads();
    host.continued_reads();
    host.load(4, 2000, |host, _| (Kind::Read, host.place(), 4096));
    host.load(16, 5000, |host, _| (Kind::Read, host.place(), 4096));
    host.single_writes(60);
    let found = host.fitted("disk.csv");
    assert!((found.shown("rpm") - 7200.0).abs() < 0.1);
    for field in ["outer_mb_s", "inner_mb_s"] {
        assert!((found.shown(field) / 200.0 - 1.0).abs() < 0.05, "{}", found.figure(field));
    }
    for gb in [10.0, 20.0, 50.0, 100.0, 300.0, 600.0, 900.0] {
        let (got, wanted) = (found.seek_ms(gb * 1e9), seek_of_7200(gb * 1e9, 60e3 / 7200.0));
        assert!((got - wanted).abs() < 0.25, "{gb} GB: {got} ms for {wanted}");
    }
    assert!((found.shown("overhead_ms") - 0.1).abs() < 0.001);
    assert!((found.shown("interface_mb_s") / 550.0 - 1.0).abs() < 0.01);
    assert_eq!((found.shown("queue_depth"), found.shown("age_weight")), (8.0, 0.1));
    assert_eq!(found.figure("read_ahead")["text"], "\"always\"");
    assert!(found.figure("write_cache_bytes")["why"].as_str().unwrap().contains("so there is a cache"));
    assert!(found.farthest("read of 4 KiB") < 0.05, "{:?}", found.checks);
    for unseen in ["heads", "track_skew_ms", "write_settle_ms", "destage_window", "flush_ms"] {
        assert!(found.is_default(unseen), "{unseen}");
    }
}

#[test]
fn flushes_show_what_they_cost() {
    let mut host = Host::of(&format!("{EVEN_7200},flush_ms=9.0)"), 200 << 30, 7);
    host.single_reads(2000);
    host.flushes(150);
    let found = host.fitted("flushed.csv");
    assert!((found.shown("flush_ms") - 9.0).abs() < 1.5, "{}", found.figure("flush_ms"));
    for (name, protected) in [("ssd-sata", "false"), ("ssd-s4600", "true")] {
        let mut host = Host::of(name, 8 << 30, 7);
        host.single_reads(500);
        host.flushes(150);
        let found = host.fitted(&format!("{name}-flushed.csv"));
        assert_eq!(found.figure("power_loss_protected")["text"], protected);
        assert!(found.farthest("FLUSH") < 0.1, "{:?}", found.checks);
    }
}

#[test]
fn writes_that_no_cache_takes_are_seen() {
    let mut host = Host::of(&format!("{EVEN_7200},write_cache_bytes=0,read_ahead=never)"), 200 << 30, 7);
    host.single_reads(1500);
    host.continued_reads();
    host.single_writes(100);
    let found = host.fitted("uncached.csv");
    assert_eq!(
        (found.figure("write_cache_bytes")["text"].as_str(), found.is_default("write_cache_bytes")),
        (Some("0"), false)
    );
    assert_eq!(found.figure("read_ahead")["text"], "\"never\"");
    assert!(found.farthest("write of 4 KiB") < 0.1, "{:?}", found.checks);
}

#[test]
fn reads_of_places_that_do_not_come_again_show_the_usual_speed() {
    let mut host = Host::of("hdd-15k", 200 << 30, 7);
    for _ in 0..2000 {
        let place = host.place();
        host.one(Kind::Read, place, 8192, 1_000_000);
    }
    let found = host.fitted("once.csv");
    assert_eq!(found.figure("rpm")["text"], "15000.0");
    assert_eq!(found.figure("rpm")["source"], "fitted");
    assert!(["outer_mb_s", "overhead_ms", "queue_depth", "read_ahead"].iter().all(|field| found.is_default(field)));
    assert!(found.farthest("read of 8 KiB, depth 1") < 0.02, "{:?}", found.checks);
}

#[test]
fn a_solid_state_drive_gives_back_what_its_trace_shows() {
    for (name, read_us, write_us, command_us) in [("ssd-sata", 94.2, 16.0, 10.2), ("nvme-980pro", 45.5, 16.0, 1.0)] {
        let mut host = Host::of(name, 16 << 30, 5);
        for bytes in [4096, 16_384, 65_536, 1 << 20] {
            for _ in 0..200 {
                let place = host.place();
                host.one(Kind::Read, place, bytes, 20_000);
            }
        }
        for depth in [2, 4, 8, 16, 32, 64, 128] {
            host.load(depth, 4000, |host, _| (Kind::Read, host.place(), 4096));
        }
        host.single_writes(60);
        let found = host.fitted(&format!("{name}.csv"));
        let alone = found.checks.iter().find(|check| check["what"] == "read of 4 KiB, depth 1, us").unwrap();
        assert!((alone["model"].as_f64().unwrap() / read_us - 1.0).abs() < 0.02, "{alone}");
        assert!((found.shown("write_firmware_us") / write_us - 1.0).abs() < 0.05);
        if name == "ssd-sata" {
            assert!((found.shown("read_command_us") / command_us - 1.0).abs() < 0.02);
            assert!((found.shown("link_mb_s") / 550.0 - 1.0).abs() < 0.06);
        }
        assert!(found.farthest("read of 4 KiB") < 0.12, "{:?}", found.checks);
        assert!(found.farthest("read of 16 KiB") < 0.05, "{:?}", found.checks);
        for unseen in ["buffer_bytes", "over_provisioning", "erase_us", "power_loss_protected"] {
            assert!(found.is_default(unseen), "{unseen}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]
    #[test]
    fn a_disk_of_other_numbers_gives_them_back(
        rpm in 4200.0..15_000.0_f64, overhead in 0.02..0.25_f64, mb_s in 200.0..600.0_f64, seed in 1..1000_u64,
    ) {
        let mut host = Host::of(
            &format!("{EVEN_7200},rpm={rpm:.2},overhead_ms={overhead:.4},interface_mb_s={mb_s:.1})"), 500 << 30, seed,
        );
        host.single_reads(2500);
        host.continued_reads();
        let found = host.fitted(&format!("{seed}.csv"));
        prop_assert!((found.shown("rpm") / rpm - 1.0).abs() < 1e-4, "{} for {rpm}", found.shown("rpm"));
        prop_assert!((found.shown("overhead_ms") - overhead).abs() < 0.005);
        prop_assert!((found.shown("interface_mb_s") / mb_s - 1.0).abs() < 0.02);
        prop_assert!(found.farthest("read of 4 KiB, depth 1") < 0.02, "{:?}", found.checks);
    }
}

fn refused(name: &str, text: &str) -> String {
    let path = written(name, text);
    let read = requests::read(std::slice::from_ref(&path), None, None).map(|_| ());
    std::fs::remove_file(path).unwrap();
    read.unwrap_err().to_string()
}

#[test]
fn a_trace_that_shows_nothing_is_refused_with_the_reason() {
    let line = |index: u64| format!("{},host,0,Read,{},4096,900\n", index * 20_000, index * 8192);
    let few: String = (0..20).map(line).collect();
    let said = refused("few.csv", &few);
    assert!(said.contains("few.csv: 20 requests say how long they took; 500 are needed"), "{said}");
    let said = refused("text", "no trace of anything\n");
    assert!(said.contains("begins like no format"), "{said}");
    let many: Vec<String> = (0..900).map(|index| format!("0.{index:06} 0 {} 8 1\n", index * 64)).collect();
    let said = refused("disksim", &many.concat());
    assert!(said.contains("0 requests say how long they took; 900 others don't; 500 are needed"), "{said}");
}

#[test]
fn a_model_plays_a_trace_with_as_many_outstanding() {
    let line = |index: u64| format!("{},host,0,Read,{},4096,350\n", index * 100, index * 4096);
    let text: String = (0..600).map(line).collect();
    let path = written("deep.csv", &text);
    let read = requests::read(std::slice::from_ref(&path), None, None).unwrap();
    std::fs::remove_file(path).unwrap();
    // One is sent every 10 us and takes 35: four are outstanding.
    assert!(read.all[10..].iter().all(|request| request.depth == 4 && !request.alone));
    let mut model = dbdyno_device::model("ideal(latency_us=350)", 1 << 30, 1).unwrap();
    let took_ns = replay::replay(&mut *model, &read.all);
    assert!(took_ns.iter().all(|ns| (*ns - 350e3).abs() < 1.0));
}
