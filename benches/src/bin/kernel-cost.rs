//! Answers one request N times through the kernel, for a tool that counts instructions: `kernel-cost CASE N`.

use std::hint::black_box;
use std::process::ExitCode;

use duplexer_bench::catalog;
use duplexer_bench::kernel::Kernel;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let kernel = arguments.next().and_then(|name| Kernel::of(&name).or_else(|| catalog::kernel(&name)));
    let times = arguments.next().and_then(|times| times.parse::<usize>().ok());
    let (Some(kernel), Some(times)) = (kernel, times) else {
        eprintln!("usage: kernel-cost CASE N, where CASE is one of the table's");
        return ExitCode::FAILURE;
    };
    let mut out = Vec::with_capacity(1024);
    for _ in 0..times {
        out.clear();
        if kernel.answer(black_box(&mut out)).is_none() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
