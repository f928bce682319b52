//! The cost of one call of each case. `cost CASE N` answers it N times, under a profiler; `cost compare FILE` measures all
//! cases and compares them with the figures in the file; `cost record FILE` writes them there.

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use duplexer_bench::allocations::Counting;
use duplexer_bench::callgrind;
use duplexer_bench::cases::{
    self, CASES, CLIENT_CASE, Case, ECHO_CASE, FRAME_CASE, LAYERS, PLAIN_CASE, PLAIN_CLIENT_CASE, TASK_CASE,
};
use duplexer_bench::figures::{self, Figure};
use duplexer_bench::layers::{self, Accuracy, Bar};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const USAGE: &str = "usage: cost CASE N | cost compare FILE | cost record FILE";
/// A case, its baseline, what the baseline is, and the maximum instructions relative to it, in percent.
const BARS: [(&str, &str, &str, u64); 3] = [
    (FRAME_CASE, PLAIN_CASE, "plain serde_json", 150),
    (CLIENT_CASE, PLAIN_CLIENT_CASE, "plain reqwest and serde_json", 150),
    (TASK_CASE, ECHO_CASE, "an echo", 120),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &arguments[..] {
        [verb, file] if verb == "compare" => compare(file),
        [verb, file] if verb == "record" => record(file),
        [case, calls] => repeat(case, calls),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn repeat(case: &str, calls: &str) -> Result<(), String> {
    let known = || CASES.iter().chain(LAYERS).map(|case| case.name).collect::<Vec<_>>().join(", ");
    let case = cases::find(case).ok_or_else(|| format!("`{case}` is not a case: {}", known()))?;
    let calls: u64 = calls.parse().map_err(|_| USAGE)?;
    answer(case, calls).map(|_| ())
}

/// Answers a case repeatedly and prints the time of one call.
#[expect(clippy::disallowed_methods, reason = "a benchmark requires the real clock")]
fn answer(case: &Case, calls: u64) -> Result<Duration, String> {
    let failed = || format!("{}: the call was not answered", case.name);
    let mut work = case.work().ok_or_else(failed)?;
    let mut out = Vec::with_capacity(256 * 1024);
    let start = Instant::now();
    for _ in 0..calls {
        out.clear();
        work(black_box(&mut out)).ok_or_else(failed)?;
    }
    Ok(start.elapsed().div_f64(calls.max(1) as f64))
}

fn compare(file: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{file}: {error} (`cargo xtask bench --record` writes it)"))?;
    let recorded = figures::read(&text).map_err(|reason| format!("{file}: {reason}"))?;
    let counted = callgrind::is_installed();
    let mut measured = measure(CASES)?;
    let mut found = figures::compare(&recorded, &measured);
    measured.extend(measure(LAYERS)?);
    found.faults.extend(above_the_bar(&measured));
    if !counted {
        let text = "instructions were NOT COUNTED AND NOT COMPARED: there is no valgrind here";
        match std::env::var("CI").as_deref() {
            Ok("true" | "1") => found.faults.push(format!("{text} (under CI=true that is a failure)")),
            _ => eprintln!("WARNING: {text}"),
        }
    }
    for advice in &found.advice {
        println!("cheaper: {advice}; `cargo xtask bench --record` keeps it so");
    }
    for fault in &found.faults {
        eprintln!("FAILED: {fault}");
    }
    if found.faults.is_empty() {
        println!("no case {} more than recorded", if counted { "costs" } else { "allocates" });
        return Ok(());
    }
    let with =
        text.lines().find_map(|line| line.strip_prefix("# Made with ")).unwrap_or("an unknown compiler");
    Err(format!("faults: {}; recorded with {with}, this is {}", found.faults.len(), compiler()))
}

fn record(file: &str) -> Result<(), String> {
    if !callgrind::is_installed() {
        return Err("instructions cannot be recorded without valgrind".to_owned());
    }
    let mut measured = measure(CASES)?;
    let text = figures::write(&measured, &compiler()).ok_or("valgrind did not count every case")?;
    std::fs::write(file, text).map_err(|error| format!("{file}: {error}"))?;
    println!("recorded in {file}");
    measured.extend(measure(LAYERS)?);
    let above = above_the_bar(&measured);
    if above.is_empty() { Ok(()) } else { Err(above.join("; ")) }
}

fn measure(cases: &[Case]) -> Result<Vec<Figure>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let counts = callgrind::is_installed();
    println!("{:<22} {:>12} {:>14} {:>12}", "", "allocations", "instructions", "ns, a hint");
    let figures = cases.iter().map(|case| {
        let allocations = case.allocations().ok_or_else(|| format!("{}: not answered", case.name))?;
        let instructions =
            if counts { callgrind::instructions(&program, case.name, case.calls) } else { None };
        if counts && instructions.is_none() {
            return Err(format!("{}: valgrind could not count its instructions", case.name));
        }
        let shown = instructions.map_or_else(|| "not counted".to_owned(), |count| count.to_string());
        println!("{:<22} {allocations:>12} {shown:>14} {:>12}", case.name, nanoseconds(case)?);
        Ok(Figure { name: case.name.to_owned(), allocations, instructions })
    });
    figures.collect()
}

/// Returns the best of several rounds: the rest is noise of the machine.
fn nanoseconds(case: &Case) -> Result<u128, String> {
    let rounds: Result<Vec<_>, _> = (0..5).map(|_| answer(case, case.calls)).collect();
    Ok(rounds?.into_iter().min().unwrap_or_default().as_nanos())
}

/// Compares cases with their plain baselines, where both were counted, and returns those above the bar.
fn above_the_bar(measured: &[Figure]) -> Vec<String> {
    let compare = |(case, plain, name, bar): (&str, &str, &str, u64)| {
        let percent = figures::percent_of(measured, case, plain)?;
        let text = format!(
            "{case}: {}.{:02} times the instructions of {name} (bar: {}.{:02})",
            percent / 100,
            percent % 100,
            bar / 100,
            bar % 100
        );
        println!("{text}");
        (percent > bar).then_some(text)
    };
    let added = |bar: &Bar| {
        let (allocations, instructions, is_within) = layers::added(bar, measured, ECHO_CASE)?;
        let text = format!(
            "{}: adds {allocations} allocations and {instructions} instructions to a call (bar: {} and {})",
            bar.case, bar.allocations, bar.instructions
        );
        println!("{text}");
        (!is_within).then_some(text)
    };
    BARS.into_iter()
        .filter_map(compare)
        .chain(layers::BARS.iter().filter_map(added))
        .chain(inexact())
        .collect()
}

/// Checks rate limits over ten million decisions each, and returns those that are off by more than one percent.
fn inexact() -> Vec<String> {
    let check = |(keys, seconds): (u32, u64)| {
        let time = Duration::from_secs(seconds);
        let Accuracy { admitted, allowed, percent_off } = layers::rate_limit(keys, 10_000_000 / keys, time);
        let text = format!(
            "a rate limit of {keys} keys admitted {admitted} of 10000000 requests, where {allowed} are within it: \
             {percent_off:.3} % off (bar: 1 %)"
        );
        println!("{text}");
        (percent_off > 1.0).then_some(text)
    };
    // Short enough that each caller sends more than its quota allows.
    [(1000, 20), (1_000_000, 4)].into_iter().filter_map(check).collect()
}

/// Names the compiler and the architecture of the counts.
fn compiler() -> String {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-V").output();
    let version = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let version = version.unwrap_or_else(|| "an unknown compiler".to_owned());
    format!("{}, {}", version.trim(), std::env::consts::ARCH)
}
