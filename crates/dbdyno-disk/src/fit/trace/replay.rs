//! A trace on a model, as its host would have sent it there: each request after as many others were done as in the trace,
//! and as long after what came last. So as many are outstanding as were, however fast the model is.

use dbdyno_device::{Command, Completion, DeviceModel};

use super::requests::Request;

/// How long each request takes the model, ns.
pub fn replay(model: &mut dyn DeviceModel, requests: &[Request]) -> Vec<f64> {
    let mut playing = Playing { model, ends_ns: Vec::new(), took_ns: vec![0.0; requests.len()], sent_ns: Vec::new() };
    let mut trace_ends_ns: Vec<u64> = requests.iter().map(|request| request.done_ns).collect();
    trace_ends_ns.sort_unstable();
    let (mut ended, mut before_ns) = (0, 0);
    for request in requests {
        while trace_ends_ns.get(ended).is_some_and(|end_ns| *end_ns <= request.at_ns) {
            ended += 1;
        }
        // What came last in the trace, and the same here.
        let trace_last_ns = ended.checked_sub(1).map_or(0, |last| trace_ends_ns[last]).max(before_ns);
        let last_ns = playing.end_of(ended).max(playing.sent_ns.last().copied().unwrap_or(0));
        playing.send(last_ns + request.at_ns.saturating_sub(trace_last_ns), request);
        before_ns = request.at_ns;
    }
    playing.end_of(requests.len());
    playing.took_ns
}

struct Playing<'a> {
    model: &'a mut dyn DeviceModel,
    /// When requests were done, in that order.
    ends_ns: Vec<u64>,
    /// By number.
    sent_ns: Vec<u64>,
    took_ns: Vec<f64>,
}

impl Playing<'_> {
    fn poll(&mut self, now_ns: u64) {
        let mut finished = Vec::new();
        self.model.poll(now_ns, &mut finished);
        for Completion { id, at_ns } in finished {
            self.ends_ns.push(at_ns);
            self.took_ns[id as usize] = (at_ns - self.sent_ns[id as usize]) as f64;
        }
    }

    /// When so many requests were done.
    fn end_of(&mut self, count: usize) -> u64 {
        while self.ends_ns.len() < count {
            let Some(due_ns) = self.model.next_due() else { break };
            self.poll(due_ns);
        }
        count.checked_sub(1).and_then(|last| self.ends_ns.get(last)).copied().unwrap_or(0)
    }

    fn send(&mut self, now_ns: u64, request: &Request) {
        while let Some(due_ns) = self.model.next_due().filter(|due_ns| *due_ns < now_ns) {
            self.poll(due_ns);
        }
        let Request { kind, offset_bytes, bytes: length_bytes, fua, .. } = *request;
        let id = self.sent_ns.len() as u64;
        self.sent_ns.push(now_ns);
        self.model.submit(now_ns, Command { id, kind, offset_bytes, length_bytes, fua });
    }
}
