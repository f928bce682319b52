//! Answers the frame N times in one way, for a tool that counts instructions: `frame-cost ours|baseline N`.

use std::hint::black_box;
use std::process::ExitCode;

use duplexer_bench::{FRAME, WAYS};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let way = arguments.next().and_then(|name| WAYS.iter().find(|(known, _)| *known == name));
    let times = arguments.next().and_then(|times| times.parse::<usize>().ok());
    let (Some((_, way)), Some(times)) = (way, times) else {
        eprintln!("usage: frame-cost ours|baseline N");
        return ExitCode::FAILURE;
    };
    let mut out = Vec::with_capacity(1024);
    for _ in 0..times {
        out.clear();
        if way(black_box(FRAME), black_box(&mut out)).is_none() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
