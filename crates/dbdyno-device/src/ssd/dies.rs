//! The flash: dies that read and program, on channels that carry the data.

use std::collections::VecDeque;

use super::spec::{SsdSpec, transfer_ns, us};

/// One page to read for a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRead {
    /// The slot of the command it belongs to.
    pub command: usize,
    /// What the host wants of the page; only that crosses the channel.
    pub bytes: u64,
}

/// One unit to program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    /// Counts programs in the order they were made.
    pub sequence: u64,
    /// What it frees in the write buffer when done.
    pub data_bytes: u64,
}

/// What a die is doing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    Read(PageRead),
    Program(Program),
}

#[derive(Debug, Default)]
struct Die {
    current: Option<Work>,
    reads: VecDeque<PageRead>,
    programs: VecDeque<Program>,
    /// Reads served since the last program.
    reads_in_a_row: u32,
}

#[derive(Debug)]
pub(super) struct Dies {
    all: Vec<Die>,
    /// When each channel is free.
    channels_free_ns: Vec<u64>,
    /// The die that gets the next program.
    next_die: usize,
    read_ns: u64,
    program_ns: u64,
    program_bytes: u64,
    channel_mb_s: f64,
    reads_before_program: u32,
}

impl Dies {
    pub(super) fn new(spec: &SsdSpec) -> Self {
        let dies = spec.channels * spec.dies_per_channel;
        Self {
            all: (0..dies).map(|_| Die::default()).collect(),
            channels_free_ns: vec![0; spec.channels],
            next_die: 0,
            read_ns: us(spec.read_us),
            program_ns: us(spec.program_us),
            program_bytes: spec.program_bytes,
            channel_mb_s: spec.channel_mb_s,
            reads_before_program: spec.reads_before_program,
        }
    }

    /// The die that holds a page: fixed, with neighbouring pages on different dies, and rotated from row to row so that
    /// no stride of the host's hits one die only. (A real drive reads a page where it last programmed it; over many
    /// random pages that comes to the same.)
    pub(super) fn die_of(&self, page: u64) -> usize {
        let dies = self.all.len() as u64;
        ((page + page / dies) % dies) as usize
    }

    pub(super) fn add_read(&mut self, die: usize, read: PageRead) {
        self.all[die].reads.push_back(read);
    }

    /// Gives the program to the next die in turn (channel after channel, so that transfers overlap) and returns it.
    pub(super) fn add_program(&mut self, program: Program) -> usize {
        let die = self.next_die;
        self.next_die = (die + 1) % self.all.len();
        self.all[die].programs.push_back(program);
        die
    }

    /// Starts the next piece of work of an idle die and returns when it ends; `None` if it is busy or has none.
    pub(super) fn start(&mut self, die: usize, now_ns: u64) -> Option<u64> {
        let channel = die % self.channels_free_ns.len();
        let state = &mut self.all[die];
        if state.current.is_some() {
            return None;
        }
        let program_is_due = state.reads_in_a_row >= self.reads_before_program && !state.programs.is_empty();
        let read = if program_is_due { None } else { state.reads.pop_front() };
        if let Some(read) = read {
            state.current = Some(Work::Read(read));
            state.reads_in_a_row += 1;
            return Some(now_ns + self.read_ns);
        }
        let program = state.programs.pop_front()?;
        state.current = Some(Work::Program(program));
        state.reads_in_a_row = 0;
        let carried_ns = self.carry(channel, now_ns, self.program_bytes);
        Some(carried_ns + self.program_ns)
    }

    /// Takes the work that has just ended off the die, and for a read the time at which its data is across the channel.
    pub(super) fn end(&mut self, die: usize, now_ns: u64) -> Option<(Work, u64)> {
        let work = self.all[die].current.take()?;
        let done_ns = match work {
            Work::Read(read) => self.carry(die % self.channels_free_ns.len(), now_ns, read.bytes),
            Work::Program(_) => now_ns,
        };
        Some((work, done_ns))
    }

    /// Moves bytes over a channel as soon as it is free; returns when they are across.
    fn carry(&mut self, channel: usize, now_ns: u64, bytes: u64) -> u64 {
        let free_ns = &mut self.channels_free_ns[channel];
        *free_ns = now_ns.max(*free_ns) + transfer_ns(bytes, self.channel_mb_s);
        *free_ns
    }
}
