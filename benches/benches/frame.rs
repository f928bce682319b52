//! Time, allocations and instructions of one call, beside the baseline. `cargo bench -p duplexer-bench`.

use std::hint::black_box;
use std::time::Instant;

use duplexer_bench::allocations::{self, Counting};
use duplexer_bench::{FRAME, WAYS, Way, callgrind};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    println!("{:<10} {:>12} {:>12} {:>14}", "", "ns per call", "allocations", "instructions");
    let rows = WAYS.map(|(name, way)| {
        let (time, allocations, instructions) = (nanoseconds(way), allocations(way), instructions(name));
        let shown = instructions.map_or_else(|| "no valgrind".to_owned(), |count| count.to_string());
        println!("{name:<10} {time:>12.0} {allocations:>12} {shown:>14}");
        (time, instructions)
    });
    let [(our_time, ours), (base_time, baseline)] = rows;
    println!("time: {:.2} of the baseline", our_time / base_time);
    if let (Some(ours), Some(baseline)) = (ours, baseline) {
        let percent = ours * 100 / baseline;
        println!("instructions: {}.{:02} of the baseline (bar: 1.50)", percent / 100, percent % 100);
    }
}

/// The best of several rounds: everything else is the machine's noise.
#[expect(clippy::disallowed_methods, reason = "a benchmark wants the real clock")]
fn nanoseconds(way: Way) -> f64 {
    const CALLS: u32 = 20_000;
    let mut out = Vec::with_capacity(1024);
    let rounds = (0..30).map(|_| {
        let start = Instant::now();
        for _ in 0..CALLS {
            out.clear();
            way(black_box(FRAME), black_box(&mut out));
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn allocations(way: Way) -> usize {
    let mut out = Vec::with_capacity(1024);
    way(FRAME, &mut out);
    allocations::during(|| {
        out.clear();
        way(black_box(FRAME), black_box(&mut out));
    })
}

fn instructions(name: &str) -> Option<u64> {
    callgrind::instructions(env!("CARGO_BIN_EXE_frame-cost"), &[name])
}
