//! A client program under measurement: `bench-client ours|plain envelope|sessions URL`.
//!
//! Each line of standard input is a number of calls and how many of them are concurrent. The program makes them, checks
//! every result, and answers with the line `done`. See `duplexer_bench::load` for programs of others.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use duplexer_bench::caller::{Caller, Era};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("bench-client: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let usage = || "usage: bench-client ours|plain envelope|sessions URL".to_owned();
    let [program, era, url] = arguments else { return Err(usage()) };
    let era = Era::read(era).ok_or_else(usage)?;
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(|error| error.to_string())?;
    let caller = match program.as_str() {
        "ours" => runtime.block_on(Caller::ours(era, url))?,
        "plain" => runtime.block_on(Caller::plain(era, url))?,
        _ => return Err(usage()),
    };
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let (calls, width) = line.split_once(' ').ok_or("a line is a number of calls and a width")?;
        let number = |text: &str| text.parse::<usize>().map_err(|error| error.to_string());
        make(&runtime, &caller, number(calls)?, number(width)?)?;
        let mut output = std::io::stdout().lock();
        writeln!(output, "done").and_then(|()| output.flush()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Makes calls in as many tasks as are concurrent.
fn make(runtime: &Runtime, caller: &Caller, calls: usize, width: usize) -> Result<(), String> {
    let width = width.max(1);
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..width {
            let caller = caller.clone();
            tasks.spawn(async move { caller.call(calls / width).await });
        }
        tasks.join_all().await.into_iter().collect()
    })
}
