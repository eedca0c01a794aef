//! What parses bytes of others, searched for inputs that break it: see `fuzz/`.
use search::{Counting, search};

#[path = "../../../fuzz/src/load.rs"]
mod load;
#[path = "../../../fuzz/src/search.rs"]
mod search;

#[global_allocator]
static MEMORY: Counting = Counting::new();

/// One after the other, as what is allocated is counted for all threads.
#[test]
fn no_bytes_break_a_parser() {
    search("reply", load::reply, &MEMORY);
    search("login", load::login, &MEMORY);
    search("prepare", load::prepare, &MEMORY);
    search("option_file", load::option_file, &MEMORY);
    search("replay_log", load::replay_log, &MEMORY);
    search("statement", load::statement, &MEMORY);
}
