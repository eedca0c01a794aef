//! Virtual time: from one event to the next.

use crate::layer::{Layer, Submitted};
use crate::source::{Source, Step};

/// Rounds at one and the same time after which time stands still for good. Those that come to an end have a few
/// thousand.
const ROUNDS_MOST: u32 = 100_000;

/// Lets a source load a layer until `until_ns`, or until nothing happens any more; returns the time of the last event.
///
/// Gives up where no time passes, as on a drive without latency under processes that never pause: something is due by
/// `until_ns` then, which is so in no other case. Goes on where an earlier call ended. Events of one time happen in
/// this order: the drive completes, timers, processes.
pub fn run(layer: &mut Layer, source: &mut dyn Source, from_ns: u64, until_ns: u64) -> u64 {
    let mut now_ns = from_ns;
    let mut rounds = 0;
    loop {
        pass_on(layer, source, now_ns);
        loop {
            source.see(layer.pools());
            let Some(step) = source.step(now_ns) else { break };
            take(layer, source, now_ns, step);
            pass_on(layer, source, now_ns);
        }
        let due = [layer.next_due(), source.next_due()];
        let Some(next_ns) = due.into_iter().flatten().min() else { return now_ns };
        rounds = if next_ns > now_ns { 0 } else { rounds + 1 };
        if next_ns > until_ns || rounds > ROUNDS_MOST {
            return now_ns;
        }
        now_ns = now_ns.max(next_ns);
        layer.advance(now_ns);
    }
}

fn take(layer: &mut Layer, source: &mut dyn Source, now_ns: u64, step: Step) {
    match step {
        Step::Submit(bio) => {
            if layer.submit(now_ns, bio) == Submitted::Asleep {
                source.asleep(bio.process);
            }
        }
        Step::Unplug(process) => layer.unplug(now_ns, process),
        Step::Exit(process) => layer.exit(now_ns, process),
    }
}

/// Lets processes know what became of what they asked for.
fn pass_on(layer: &mut Layer, source: &mut dyn Source, now_ns: u64) {
    while let Some(bio) = layer.next_finished() {
        source.finished(now_ns, &bio);
    }
    while let Some(process) = layer.next_woken() {
        source.awake(process);
    }
}
