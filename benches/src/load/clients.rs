//! Client programs beside each other, against one server: CPU time and instructions of a call.
//!
//! A program connects to `{url}`. Each line of its standard input is a number of calls of the tool `echo` and how many of
//! them are concurrent; it answers with a line when all of them have succeeded. The programs work in turn, in short slices.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::server::Server;
use super::{SLICE, Slice, stats};

/// Scenarios: name, era, concurrent calls.
const SCENARIOS: &[(&str, &str, usize)] = &[
    ("client-envelope-1", "envelope", 1),
    ("client-envelope-16", "envelope", 16),
    ("client-sessions-1", "sessions", 1),
    ("client-sessions-16", "sessions", 16),
];

const SECONDS: u32 = 8;
/// Calls of the warm-up, and of the two runs under valgrind whose difference is counted.
const WARMING: usize = 320;
const FEW: usize = 50;
const MANY: usize = 450;
/// Attempts to connect to the server, and the time between them.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// Options of the command line.
#[derive(Debug)]
struct Options {
    server: String,
    /// Name and command of each program, the plain one first.
    programs: Vec<(String, String)>,
    seconds: u32,
    instructions: Count,
}

/// Whether instructions are counted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Instructions,
    TimeOnly,
}

impl Options {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            server: String::new(),
            programs: Vec::new(),
            seconds: SECONDS,
            instructions: Count::TimeOnly,
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} requires a value\n{USAGE}"));
            match word.as_str() {
                "--server" => value()?.clone_into(&mut options.server),
                "--seconds" => {
                    let number = value()?;
                    let seconds =
                        number.parse().map_err(|_| format!("'{number}' is not a number of seconds"));
                    options.seconds = seconds?;
                }
                "--instructions" => options.instructions = Count::Instructions,
                "--beside" => {
                    let text = value()?;
                    let (name, command) = text
                        .split_once('=')
                        .filter(|(_, command)| command.contains("{url}"))
                        .ok_or_else(|| format!("'{text}' is not NAME=COMMAND with {{url}} in it\n{USAGE}"))?;
                    options.programs.push((name.to_owned(), command.to_owned()));
                }
                other => return Err(format!("'{other}' is not an option\n{USAGE}")),
            }
        }
        if options.programs.is_empty() || !options.server.contains("{port}") {
            return Err(format!("no server or no program is named\n{USAGE}"));
        }
        Ok(options)
    }
}

const USAGE: &str = "usage: load client --server COMMAND [--seconds N] [--instructions] --beside NAME=COMMAND..\n\
                     the server has {port} in its command, a client {url} and, if it knows both eras, {era}";

/// Runs the command line. An error is a message for the user.
pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let options = Options::read(arguments)?;
    let (_server, port) = Server::on_port(&options.server)?;
    wait_for(port)?;
    let url = format!("http://127.0.0.1:{port}/mcp");
    println!("{}", stats::HEADER);
    for (scenario, era, width) in SCENARIOS {
        compare(scenario, &options, |command| command.replace("{url}", &url).replace("{era}", era), *width)?;
    }
    if options.instructions == Count::Instructions {
        for era in ["envelope", "sessions"] {
            println!("\ninstructions of one call, {era}");
            for (name, command) in &options.programs {
                let command = command.replace("{url}", &url).replace("{era}", era);
                let count = instructions(&command)?;
                println!("{name:<12} {count:>10}");
            }
        }
    }
    Ok(())
}

fn wait_for(port: u16) -> Result<(), String> {
    for _ in 0..ATTEMPTS {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err("the server does not listen".to_owned())
}

/// Measures the programs in turn and prints a row for each.
fn compare(
    scenario: &str,
    options: &Options,
    complete: impl Fn(&str) -> String,
    width: usize,
) -> Result<(), String> {
    let mut programs = Vec::new();
    for (name, command) in &options.programs {
        programs.push(Program::start(name, &complete(command), width)?);
    }
    for round in 0..stats::rounds(options.seconds, programs.len(), SLICE) {
        for position in 0..programs.len() {
            // The order rotates with every round.
            let at = (round + position) % programs.len();
            programs[at].measure(width)?;
        }
    }
    let first: Vec<f64> = programs[0].slices.iter().map(Slice::cpu_per_unit).collect();
    for program in &programs {
        println!("{}", stats::row(scenario, &program.name, &program.slices, &first));
    }
    Ok(())
}

/// A running client program.
struct Program {
    name: String,
    process: Server,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Calls of one slice.
    calls: usize,
    slices: Vec<Slice>,
}

impl Program {
    /// Starts a program and finds out how many calls it makes in a slice.
    fn start(name: &str, command: &str, width: usize) -> Result<Self, String> {
        let (process, input, output) = Server::on_streams(command)?;
        let (name, output) = (name.to_owned(), BufReader::new(output));
        let mut program = Self { name, process, input, output, calls: WARMING, slices: Vec::new() };
        // The first calls include the handshake and the growth of all buffers.
        program.measure(width)?;
        program.measure(width)?;
        let took = program.slices.last().map_or(SLICE, |slice| slice.took);
        let ratio = SLICE.as_secs_f64() / took.as_secs_f64().max(1e-6);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let calls = (WARMING as f64 * ratio) as usize;
        program.calls = calls.clamp(WARMING, 100_000) / 16 * 16;
        program.slices.clear();
        Ok(program)
    }

    #[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
    fn measure(&mut self, width: usize) -> Result<(), String> {
        let (begun, before) = (Instant::now(), self.process.cpu()?);
        let failed = |error: std::io::Error| format!("{}: {error}", self.name);
        writeln!(self.input, "{} {width}", self.calls).map_err(failed)?;
        let mut line = String::new();
        if self.output.read_line(&mut line).map_err(failed)? == 0 {
            return Err(format!("{} has ended: a call has failed", self.name));
        }
        let (took, cpu) = (begun.elapsed(), self.process.cpu()?.saturating_sub(before));
        self.slices.push(Slice { latencies: Vec::new(), took, cpu, units: self.calls as u64 });
        Ok(())
    }
}

/// Counts the instructions of one call: the difference of two runs of a program.
fn instructions(command: &str) -> Result<u64, String> {
    let counted = total(command, FEW + MANY)?.saturating_sub(total(command, FEW)?);
    Ok(counted / MANY as u64)
}

fn total(command: &str, calls: usize) -> Result<u64, String> {
    let valgrind = format!("exec valgrind --tool=callgrind --callgrind-out-file=/dev/null {command}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &valgrind]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = shell.spawn().map_err(|error| error.to_string())?;
    let mut input = child.stdin.take().ok_or("valgrind has no input")?;
    writeln!(input, "{calls} 1").map_err(|error| error.to_string())?;
    drop(input);
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let report = String::from_utf8_lossy(&output.stderr);
    let line = report.lines().find(|line| line.contains("Collected :")).filter(|_| output.status.success());
    let count = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    count.ok_or_else(|| format!("valgrind counts nothing: is it installed?\n{report}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        Options::read(&line.split('|').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn programs_are_compared_with_the_first() {
        let line =
            "--server|s {port}|--beside|plain=p {era} {url}|--beside|o=x {url}|--seconds|3|--instructions";
        let options = read(line).unwrap();
        assert_eq!(options.programs[0], ("plain".to_owned(), "p {era} {url}".to_owned()));
        assert_eq!((options.programs.len(), options.seconds), (2, 3));
        assert_eq!(options.instructions, Count::Instructions);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, named) in [
            ("--server|s {port}", "no program"),
            ("--beside|a=x {url}", "no server"),
            ("--beside|a=x", "'a=x'"),
            ("--seconds|soon", "'soon'"),
            ("--server", "--server requires"),
            ("fast", "'fast'"),
        ] {
            assert!(read(line).unwrap_err().contains(named), "{line}");
        }
    }

    /// A program is measured while it works; one that ends has failed.
    #[test]
    fn a_program_answers_each_line() {
        let mut program =
            Program::start("echo", "sh -c 'while read -r line; do echo done; done'", 1).unwrap();
        program.measure(1).unwrap();
        assert_eq!(program.slices.len(), 1);
        assert!(Program::start("ends", "true", 1).is_err());
    }
}
