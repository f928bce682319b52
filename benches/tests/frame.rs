//! The part of the bar that is cheap to check: bytes and allocations.

use duplexer_bench::allocations::{self, Counting};
use duplexer_bench::{FRAME, REPLY, WAYS, ours};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn both_ways_write_the_same_reply() {
    for (name, way) in WAYS {
        let mut out = Vec::new();
        assert_eq!(way(FRAME, &mut out), Some(()), "{name}");
        assert_eq!(String::from_utf8(out).unwrap(), REPLY, "{name}");
    }
}

#[test]
fn a_call_allocates_at_most_four_times() {
    let mut out = Vec::with_capacity(1024);
    ours(FRAME, &mut out);
    out.clear();
    let count = allocations::during(|| assert_eq!(ours(FRAME, &mut out), Some(())));
    assert!((1..=4).contains(&count), "{count} allocations");
}
