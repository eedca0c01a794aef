//! Plays a trace through a drive model, one request at a time: `replay DRIVE SIZE_BYTES SEED < trace`.
//!
//! A line of the trace is `R|W offset_bytes length_bytes think_us`: the next request comes `think_us` after this one is
//! done. Prints each response time, microseconds.

#![allow(clippy::unwrap_used)]

use dbdyno_device::{Command, Kind, model};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [drive, size_bytes, seed] = &arguments[..] else {
        eprintln!("usage: replay DRIVE SIZE_BYTES SEED < trace");
        std::process::exit(2);
    };
    let made = model(drive, size_bytes.parse().unwrap(), seed.parse().unwrap());
    let mut device = made.unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2);
    });
    let (mut now_ns, mut finished) = (0, Vec::new());
    for (id, line) in (0..).zip(std::io::stdin().lines()) {
        let line = line.unwrap();
        let mut fields = line.split(' ');
        let kind = if fields.next() == Some("W") { Kind::Write } else { Kind::Read };
        let mut number = || fields.next().unwrap().parse::<f64>().unwrap();
        let (offset_bytes, length_bytes, think_us) = (number() as u64, number() as u64, number());
        device.submit(now_ns, Command { id, kind, offset_bytes, length_bytes, fua: false });
        while finished.is_empty() {
            let due_ns = device.next_due().unwrap();
            device.poll(due_ns, &mut finished);
        }
        let end_ns = finished.pop().unwrap().at_ns;
        println!("{:.3}", (end_ns - now_ns) as f64 / 1e3);
        now_ns = end_ns + (think_us * 1e3) as u64;
    }
}
