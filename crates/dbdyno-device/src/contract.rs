//! What every device model promises.

/// What a command asks of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Bring `length_bytes` from the medium to the host.
    Read,
    /// Take `length_bytes` from the host; durable only after a later [`Kind::Flush`].
    Write,
    /// Make durable every write completed before this command was submitted. Offset and length are ignored.
    Flush,
    /// Forget a range.
    Discard,
}

/// One command from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Chosen by the caller, unique among the commands outstanding, given back in [`Completion::id`].
    pub id: u64,
    /// What is asked.
    pub kind: Kind,
    /// Start, in bytes from the beginning of the device.
    pub offset_bytes: u64,
    /// Length in bytes. A range that reaches past the end of the device is served as if it ended there.
    pub length_bytes: u64,
}

impl Command {
    /// The command with its range cut at the end of a device of `size_bytes`.
    pub(crate) fn within(self, size_bytes: u64) -> Self {
        let offset_bytes = self.offset_bytes.min(size_bytes);
        Self { offset_bytes, length_bytes: self.length_bytes.min(size_bytes - offset_bytes), ..self }
    }

    /// First byte after the range; call [`Command::within`] first.
    pub(crate) fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.length_bytes
    }
}

/// The end of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The command's [`Command::id`].
    pub id: u64,
    /// When the device finished it, in the caller's nanoseconds. Not before its submission, and not after the `now_ns`
    /// of the [`DeviceModel::poll`] that returned it.
    pub at_ns: u64,
}

/// How a device spends its time.
///
/// All times are nanoseconds on one clock of the caller's choice, given in non-decreasing order over all calls (an
/// earlier time counts as the latest one seen). A completion never precedes its submission; every command completes
/// exactly once; the same calls on a model of the same seed give the same completions.
pub trait DeviceModel {
    /// Hands the device a command at `now_ns`.
    fn submit(&mut self, now_ns: u64, command: Command);

    /// When to call [`DeviceModel::poll`] next: the earliest time at which a command may complete or the device must
    /// choose what to do next. `None` if no command is outstanding. A further `submit` may change it.
    fn next_due(&self) -> Option<u64>;

    /// Appends to `finished` what has completed by `now_ns`, in order of completion. May append nothing although
    /// `next_due` has passed: the device then made a choice, and `next_due` is later.
    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>);
}
