//! The part of the kernel's figures that is cheap to check: bytes and allocations.

use duplexer_bench::allocations::{self, Counting};
use duplexer_bench::kernel::{CASES, Kernel};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// See the README for what they are.
const MOST: [(&str, usize); 4] =
    [("envelope", 10), ("envelope-5", 20), ("handshake", 8), ("handshake-5", 18)];

#[test]
fn a_call_through_the_kernel_allocates_no_more_than_recorded() {
    for ((name, ..), (recorded, most)) in CASES.into_iter().zip(MOST) {
        assert_eq!(name, recorded);
        let kernel = Kernel::of(name).unwrap();
        let mut out = Vec::with_capacity(1024);
        assert_eq!(kernel.answer(&mut out), Some(()), "{name}");
        let text = String::from_utf8(out.clone()).unwrap();
        assert!(text.contains("The quick brown fox"), "{text}");
        assert_eq!(text.contains("resultType"), name.starts_with("envelope"), "{text}");
        out.clear();
        let count = allocations::during(|| assert_eq!(kernel.answer(&mut out), Some(())));
        assert!((1..=most).contains(&count), "{name}: {count} allocations");
    }
}
