//! Allocations and instructions of one call through the kernel. `cargo bench -p duplexer-bench --bench kernel`.

use duplexer_bench::allocations::{self, Counting};
use duplexer_bench::kernel::{CASES, Kernel};
use duplexer_bench::{callgrind, catalog};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    println!("{:<12} {:>12} {:>14}", "", "allocations", "instructions");
    let authored = catalog::CASES.into_iter().map(|(name, ..)| name);
    for name in CASES.into_iter().map(|(name, ..)| name).chain(authored) {
        let instructions = callgrind::instructions(env!("CARGO_BIN_EXE_kernel-cost"), &[name]);
        let shown = instructions.map_or_else(|| "no valgrind".to_owned(), |count| count.to_string());
        println!("{name:<12} {:>12} {shown:>14}", allocations(name).unwrap_or_default());
    }
}

fn allocations(name: &str) -> Option<usize> {
    let kernel = Kernel::of(name).or_else(|| catalog::kernel(name))?;
    let mut out = Vec::with_capacity(64 * 1024);
    kernel.answer(&mut out)?;
    out.clear();
    Some(allocations::during(|| {
        kernel.answer(&mut out);
    }))
}
