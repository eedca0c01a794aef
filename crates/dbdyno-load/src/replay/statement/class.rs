//! What is sent of a log.

/// Whether and when a statement is sent; the later, the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Always: it reads, sets something of its session, or begins or ends a transaction.
    Reads,
    /// Where the log's writes are wanted: it calls a function that is not known to do no more than read.
    Functions,
    /// Where the log's writes are wanted.
    Writes,
    /// Where the log's writes are wanted and the server itself confines them: what it runs, the log does not show.
    Hidden,
    /// Never: it is several statements.
    Several,
    /// How it is read depends on the server; the words that it has, in any order, say then what it is.
    Odd,
    /// Never: it has `?` in place of values.
    Placeholder,
    /// Never: `USE`, as the log has the default schema of each statement.
    Use,
    /// Never: it needs a file of the client's.
    LocalFile,
    /// Never: it reads or writes a file of the server's.
    ServerFile,
    /// Never: it is of no kind that is known.
    Unknown,
    /// Never: it is about connections, accounts, settings, replication or the life of the logged server.
    Administers,
    /// Never: it has no end, or every server refuses it.
    CutOff,
}
