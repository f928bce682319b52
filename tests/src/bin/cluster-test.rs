//! Runs nodes on a store under load, while faults happen, and reports what clients have seen (`cargo xtask cluster-test`).
//!
//! `cluster-test --node PROGRAM [--seed N] [--seeds N] [--seconds N] [--balancer own|nginx|haproxy] [--write FOLDER]`. The
//! store is the program in `REDIS_SERVER`, or on `PATH`. With `--write` the table and the time line of the first seed go into a folder.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    unix::main()
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("cluster-test: processes are stopped and continued with signals, which only Unix has");
    ExitCode::FAILURE
}

#[cfg(unix)]
mod unix {
    use std::path::PathBuf;
    use std::process::ExitCode;
    use std::time::Duration;

    use duplexer_tests::cluster::{self, Balancer, Options, Summary};
    use duplexer_tests::store_program;

    const USAGE: &str = "usage: cluster-test --node PROGRAM [--seed N] [--seeds N] [--seconds N] \
        [--balancer own|nginx|haproxy] [--write FOLDER]";

    struct Arguments {
        first: u64,
        seeds: u64,
        seconds: u64,
        balancer: Balancer,
        node: PathBuf,
        store: PathBuf,
        write: Option<PathBuf>,
    }

    fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let (mut first, mut seeds, mut seconds) = (1, 1, 60);
        let (mut balancer, mut node, mut write) = (Balancer::Own, None, None);
        while let Some(option) = words.next() {
            let value = words.next().ok_or_else(|| format!("{option} needs a value\n{USAGE}"))?;
            let number =
                || value.parse::<u64>().map_err(|_| format!("{option} {value}: not a number\n{USAGE}"));
            match option.as_str() {
                "--seed" => first = number()?,
                "--seeds" => seeds = number()?,
                "--seconds" => seconds = number()?,
                "--balancer" => balancer = value.parse()?,
                "--node" => node = Some(value.into()),
                "--write" => write = Some(value.into()),
                _ => return Err(format!("unknown option {option}\n{USAGE}")),
            }
        }
        let store = store_program::find()
            .ok_or("no redis-server or valkey-server: set REDIS_SERVER, or install one")?;
        let node = node.ok_or(USAGE)?;
        Ok(Arguments { first, seeds, seconds, balancer, node, store: store.into(), write })
    }

    fn run(arguments: &Arguments) -> Result<bool, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let (mut summary, mut passed) = (Summary::default(), true);
        for seed in arguments.first..arguments.first + arguments.seeds {
            println!("seed {seed}, {} s, balancer {:?}", arguments.seconds, arguments.balancer);
            let options = Options {
                seed,
                length: Duration::from_secs(arguments.seconds),
                balancer: arguments.balancer,
                node: arguments.node.clone(),
                store: arguments.store.clone(),
                folder: std::env::temp_dir().join(format!("cluster-test-{}-{seed}", std::process::id())),
            };
            let report = runtime.block_on(cluster::run(&options));
            let findings = report.findings();
            for finding in findings.iter().take(50) {
                println!("FOUND {finding}");
            }
            if findings.is_empty() {
                std::fs::remove_dir_all(&options.folder).map_err(|error| error.to_string())?;
            } else {
                passed = false;
                println!("seed {seed}: {} findings; logs in {}", findings.len(), options.folder.display());
            }
            if let Some(folder) = arguments.write.as_ref().filter(|_| seed == arguments.first) {
                write(folder, "timeline.csv", &report.timeline())?;
            }
            summary.add(&report);
        }
        let table = summary.table();
        println!("\n{table}");
        if let Some(folder) = &arguments.write {
            write(folder, "table.md", &table)?;
        }
        Ok(passed)
    }

    fn write(folder: &std::path::Path, name: &str, text: &str) -> Result<(), String> {
        let path = folder.join(name);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(crate) fn main() -> ExitCode {
        match arguments(std::env::args().skip(1)).and_then(|arguments| run(&arguments)) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(reason) => {
                eprintln!("cluster-test: {reason}");
                ExitCode::FAILURE
            }
        }
    }
}
