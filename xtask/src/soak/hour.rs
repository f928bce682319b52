//! `cargo xtask soak hour`: an hour of bounded load on loopback, in both eras, by clients that also fail on purpose.
//!
//! Once a minute the load pauses, and memory, descriptors and threads of the server are read. They must stay flat.

#![expect(clippy::disallowed_methods, reason = "there is no runtime here whose clock could be used")]

use std::fmt::Write as _;
use std::fs;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::actions::ACTIONS;
use super::plot;
use crate::load::{self, Fault, Server};
use crate::process;
use crate::scale::with_table;

pub(super) const MINUTES: u32 = 60;
const CLIENTS: u32 = 6;
/// Pause of a client between two actions: it bounds the load.
const PAUSE: Duration = Duration::from_millis(20);
const MINUTE: Duration = Duration::from_secs(60);
/// Time without load before a sample, in which calls of clients that have left end.
const SETTLE: Duration = Duration::from_secs(2);
/// Idle timeout of sessions: abandoned ones are gone a minute later.
const IDLE: &str = "30";
/// Permitted growth of memory from the first to the second half, in addition to a tenth, in kB.
const MEMORY_SLACK: u32 = 4 * 1024;
/// Permitted growth of descriptors and of threads.
const COUNT_SLACK: u32 = 4;
const FOLDER: &str = "docs/reliability";
const HEAD: &str = "minute,actions,memory_kb,descriptors,threads";

/// What was read after a minute of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) minute: u32,
    /// Actions until then.
    pub(super) actions: u32,
    pub(super) memory: u32,
    pub(super) descriptors: u32,
    pub(super) threads: u32,
}

/// Whether the outcome becomes part of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Build,
    Documentation,
}

/// What the clients share.
struct Load {
    port: u16,
    done: AtomicBool,
    counts: Vec<AtomicU32>,
    /// Clients hold it while they act; the sampler takes it alone.
    pause: RwLock<()>,
}

pub(super) fn run(minutes: u32, output: Output) -> Result<(), Fault> {
    load::build()?;
    let server = Server::start_silent(&["--with-changes", "--session-idle", IDLE])?;
    let load = Load {
        port: server.port,
        done: AtomicBool::new(false),
        counts: ACTIONS.iter().map(|_| AtomicU32::new(0)).collect(),
        pause: RwLock::new(()),
    };
    let samples = thread::scope(|scope| {
        let load = &load;
        let clients: Vec<_> = (1..=CLIENTS).map(|number| scope.spawn(move || client(load, number))).collect();
        let samples = sampled(&server, load, minutes);
        load.done.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().map_err(|_| Fault("a client panicked".into()))??;
        }
        samples
    })?;
    let table = table(&load, &samples);
    println!("\n{table}");
    write(&samples, &table, output)?;
    judged(&samples)
}

/// Acts until the end of the run. A failure ends all clients.
fn client(load: &Load, number: u32) -> Result<(), Fault> {
    let mut random = u64::from(number);
    let mut count = number << 24;
    while !load.done.load(Ordering::Relaxed) {
        // The generator of Knuth's MMIX: the same actions in every run.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let index = usize::try_from((random >> 33) % ACTIONS.len() as u64).unwrap_or_default();
        let (Some(action), Some(counter)) = (ACTIONS.get(index), load.counts.get(index)) else { continue };
        count = count.wrapping_add(16);
        let held = load.pause.read();
        let outcome = (action.run)(load.port, count);
        drop(held);
        if let Err(fault) = outcome {
            load.done.store(true, Ordering::Relaxed);
            return Err(Fault(format!("{}: {fault}", action.name)));
        }
        counter.fetch_add(1, Ordering::Relaxed);
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Takes a sample after each minute.
fn sampled(server: &Server, load: &Load, minutes: u32) -> Result<Vec<Sample>, Fault> {
    let mut samples = Vec::new();
    for minute in 1..=minutes {
        let until = Instant::now() + MINUTE;
        while Instant::now() < until {
            if load.done.load(Ordering::Relaxed) {
                return Err(Fault(format!("a client failed in minute {minute}")));
            }
            thread::sleep(Duration::from_millis(100));
        }
        let pause = load.pause.write();
        thread::sleep(SETTLE);
        server.process.rest()?;
        let sample = Sample {
            minute,
            actions: load.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum(),
            memory: server.process.memory()?,
            descriptors: server.process.descriptors()?,
            threads: server.process.threads()?,
        };
        drop(pause);
        println!("{}", row(&sample));
        samples.push(sample);
    }
    Ok(samples)
}

fn row(sample: &Sample) -> String {
    let Sample { minute, actions, memory, descriptors, threads } = sample;
    format!("{minute},{actions},{memory},{descriptors},{threads}")
}

/// Fails if a value of the second half is above those of the first half.
fn judged(samples: &[Sample]) -> Result<(), Fault> {
    let (first, second) = samples.split_at(samples.len() / 2);
    let most = |half: &[Sample], value: fn(&Sample) -> u32| half.iter().map(value).max().unwrap_or_default();
    let mut faults = Vec::new();
    let mut compare = |what: &str, value: fn(&Sample) -> u32, slack: fn(u32) -> u32| {
        let (before, after) = (most(first, value), most(second, value));
        if after > before + slack(before) {
            faults.push(format!("{what} have grown from {before} to {after}"));
        }
    };
    compare("kB of memory", |sample| sample.memory, |before| before / 10 + MEMORY_SLACK);
    compare("descriptors", |sample| sample.descriptors, |_| COUNT_SLACK);
    compare("threads", |sample| sample.threads, |_| COUNT_SLACK);
    if faults.is_empty() {
        println!("memory, descriptors and threads are flat");
        return Ok(());
    }
    Err(Fault(faults.join("; ")))
}

/// Describes the run: actions by kind, and what was read first and last.
fn table(load: &Load, samples: &[Sample]) -> String {
    let mut text = "| action | kind | times |\n|---|---|---:|\n".to_owned();
    for (action, count) in ACTIONS.iter().zip(&load.counts) {
        let kind = if action.is_fault { "fault" } else { "use" };
        let _ = writeln!(text, "| {} | {kind} | {} |", action.name, count.load(Ordering::Relaxed));
    }
    let range = |value: fn(&Sample) -> u32| {
        let values = || samples.iter().map(value);
        let ends = (samples.first().map(value), samples.last().map(value));
        let (first, last) = (ends.0.unwrap_or_default(), ends.1.unwrap_or_default());
        let (lowest, highest) = (values().min().unwrap_or_default(), values().max().unwrap_or_default());
        format!("{first} | {last} | {lowest} | {highest}")
    };
    let _ = write!(
        text,
        "\n| after {} minutes | first minute | last minute | least | most |\n|---|---:|---:|---:|---:|\n\
         | memory, kB | {} |\n| descriptors | {} |\n| threads | {} |",
        samples.len(),
        range(|sample| sample.memory),
        range(|sample| sample.descriptors),
        range(|sample| sample.threads)
    );
    text
}

/// Writes the samples and their plot.
fn write(samples: &[Sample], table: &str, output: Output) -> Result<(), Fault> {
    let folder = match output {
        Output::Build => process::target().join("soak"),
        Output::Documentation => process::root().join(FOLDER),
    };
    let rows: Vec<String> = samples.iter().map(row).collect();
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("soak.csv"), format!("{HEAD}\n{}\n", rows.join("\n")))?;
    fs::write(folder.join("soak.svg"), plot::svg(samples))?;
    println!("written: soak.csv and soak.svg in {}", folder.display());
    if output == Output::Build {
        return Ok(());
    }
    let document = process::root().join("docs").join("reliability.md");
    let text = fs::read_to_string(&document)?;
    let renewed = with_table(&text, "<!-- soak hour -->\n", &format!("\n{table}"));
    let renewed =
        renewed.ok_or_else(|| Fault("docs/reliability.md has no place for the table of the soak".into()))?;
    Ok(fs::write(&document, renewed)?)
}

#[cfg(test)]
mod tests {
    use super::{Sample, judged};

    fn samples(memory: [u32; 4], descriptors: [u32; 4]) -> Vec<Sample> {
        let sample =
            |(minute, (memory, descriptors))| Sample { minute, actions: 1, memory, descriptors, threads: 4 };
        (1..).zip(memory.into_iter().zip(descriptors)).map(sample).collect()
    }

    #[test]
    fn what_stays_is_flat_and_what_grows_is_not() {
        assert!(judged(&samples([20_000, 21_000, 20_500, 21_500], [12, 13, 12, 14])).is_ok());
        let leak = judged(&samples([20_000, 24_000, 28_000, 36_000], [12, 12, 12, 12])).unwrap_err();
        assert_eq!(leak.0, "kB of memory have grown from 24000 to 36000");
        let leak = judged(&samples([20_000; 4], [12, 12, 40, 80])).unwrap_err();
        assert_eq!(leak.0, "descriptors have grown from 12 to 80");
    }
}
