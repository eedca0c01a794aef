//! What the drive gets of writes that ask for flushes, by version.

#![allow(clippy::unwrap_used)]

mod bench;

use bench::watched;
use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::layer::{Flushing, Layer, Submitted};
use dbdyno_blk::queue::{Bio, Direction};
use dbdyno_device::Kind;

fn write(at: u64) -> Bio {
    Bio { token: at, ..Bio::new(0, Direction::Write, at * 1000, 8) }
}

/// Commands as letters: F flush, W write, U write with FUA; a space where the time goes on. And bios in the order they ended.
fn sent(kernel: &str, no_fua: bool, bios: &[Bio]) -> (String, Vec<u64>) {
    let (drive, commands) = watched("ideal(latency_us=100)");
    let settings = Settings { scheduler: Some("noop"), no_fua, ..Settings::default() };
    let mut layer = Kernel::named(kernel).unwrap().layer(&settings, drive).unwrap();
    for bio in bios {
        assert_eq!(layer.submit(0, *bio), Submitted::Queued);
        layer.unplug(0, bio.process);
    }
    let ended = to_the_end(&mut layer);
    let (mut letters, mut then_ns) = (String::new(), 0);
    for (at_ns, command) in commands.lock().unwrap().iter() {
        if *at_ns > then_ns {
            letters.push(' ');
        }
        then_ns = *at_ns;
        letters.push(match command.kind {
            Kind::Flush => 'F',
            _ if command.fua => 'U',
            _ => 'W',
        });
    }
    (letters, ended)
}

fn to_the_end(layer: &mut Layer) -> Vec<u64> {
    while let Some(due_ns) = layer.next_due() {
        layer.advance(due_ns);
        while let Some(process) = layer.next_woken() {
            layer.unplug(due_ns, process);
        }
    }
    assert_eq!((layer.pools().allocated(), layer.statistics().queued()), (0, 0));
    std::iter::from_fn(|| layer.next_finished()).map(|bio| bio.token).collect()
}

#[test]
fn a_barrier_is_alone_at_the_drive_and_nothing_passes_it() {
    let barrier = Bio { flush: true, ..write(3) };
    let bios = [write(5), write(4), barrier, write(1), write(2)];
    assert_eq!(sent("2.6.18", false, &bios), ("WW F W F WW".into(), vec![5, 4, 3, 1, 2]));
    let with_fua = Bio { fua: true, ..barrier };
    assert_eq!(sent("2.6.32", false, &[write(5), with_fua, write(1)]).0, "W F U W");
    assert_eq!(sent("2.6.32", true, &[write(5), with_fua, write(1)]).0, "W F W F W");
}

#[test]
fn a_sequence_lets_others_pass() {
    let sequence = Bio { flush: true, fua: true, ..write(3) };
    assert_eq!(sent("3.10", false, &[write(5), sequence, write(1)]), ("WFW U".into(), vec![5, 1, 3]));
    assert_eq!(sent("3.10", true, &[write(5), sequence, write(1)]).0, "WFW W F");
    let fua = Bio { fua: true, ..write(3) };
    assert_eq!(sent("4.4", false, &[fua]).0, "U");
    assert_eq!(sent("4.4", true, &[fua]).0, "W F");
}

#[test]
fn one_flush_serves_all_who_wait_for_one() {
    let flush = |token| Bio { flush: true, token, ..Bio::new(0, Direction::Write, 0, 0) };
    let bios = [flush(1), flush(2), flush(3), flush(4)];
    assert_eq!(sent("3.10", false, &bios), ("F F".into(), vec![1, 2, 3, 4]));
    assert_eq!(sent("2.6.18", false, &bios).0, "F F F F");
}

#[test]
fn a_bare_flush_is_a_barrier_of_one_step() {
    let flush = Bio { flush: true, token: 3, ..Bio::new(0, Direction::Write, 0, 0) };
    let bios = [write(5), flush, write(1)];
    assert_eq!(sent("2.6.32", false, &bios), ("W F W".into(), vec![5, 3, 1]));
    assert_eq!(sent("3.10", false, &bios).0, "WFW");
}

#[test]
fn a_barrier_drains_every_scheduler() {
    for (kernel, scheduler) in bench::stacks() {
        let (drive, _) = watched("ssd-sata");
        let settings = Settings { scheduler: Some(scheduler), depth: Some(4), ..Settings::default() };
        let mut layer = kernel.layer(&settings, drive).unwrap();
        for at in 0..60 {
            let bio = Bio { process: at as u32 % 5, sync: at % 3 == 0, flush: at % 20 == 19, ..write(at) };
            layer.submit(0, bio);
            layer.unplug(0, bio.process);
        }
        let ended = to_the_end(&mut layer);
        assert_eq!(ended.len(), 60, "{} {scheduler}", kernel.name);
        if kernel.flushing == Flushing::Barrier {
            let ended: Vec<_> = ended.chunks(20).map(|chunk| chunk.iter().all(|at| at / 20 == chunk[0] / 20)).collect();
            assert_eq!(ended, [true, true, true], "{} {scheduler}", kernel.name);
        }
    }
}
