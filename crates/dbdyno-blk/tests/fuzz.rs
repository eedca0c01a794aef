//! What reads traces, searched for inputs that break it: see `fuzz/`.
use search::{Counting, search};

#[path = "../../../fuzz/src/blk.rs"]
mod blk;
#[path = "../../../fuzz/src/search.rs"]
mod search;

#[global_allocator]
static MEMORY: Counting = Counting::new();

#[test]
fn no_bytes_break_the_reader_of_traces() {
    search("trace", blk::trace, &MEMORY);
}
