//! Measures what shared stores cost (`cargo xtask cluster-test --costs`).
//!
//! `cluster-costs --node PROGRAM --write FOLDER`. The store is the program in `REDIS_SERVER`, or on `PATH`. The table goes into
//! the folder, as `costs.md`. A bar that is missed is named at the end, and is a failure.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn run() -> Result<(), String> {
    use std::path::PathBuf;

    use duplexer_tests::{costs, store_program};

    let words: Vec<String> = std::env::args().skip(1).collect();
    let [node_option, node, write_option, folder] = &words[..] else { return Err(USAGE.to_owned()) };
    if node_option != "--node" || write_option != "--write" {
        return Err(USAGE.to_owned());
    }
    let store: PathBuf = store_program::find()
        .ok_or("no redis-server or valkey-server: set REDIS_SERVER, or install one")?
        .into();
    let folder = PathBuf::from(folder);
    let data = std::env::temp_dir().join(format!("cluster-costs-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let figures =
        runtime.map_err(|error| error.to_string())?.block_on(costs::run(node.as_ref(), &store, &data));
    let _ = std::fs::remove_dir_all(&data);
    let table = costs::table(&figures);
    println!("\n{table}");
    let path = folder.join("costs.md");
    std::fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))?;
    if let Some(missed) = costs::missed(&figures) {
        return Err(missed);
    }
    println!("all {} bars are met", figures.len());
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn run() -> Result<(), String> {
    Err("processor time is read from /proc, which only Linux has".to_owned())
}

#[cfg(target_os = "linux")]
const USAGE: &str = "usage: cluster-costs --node PROGRAM --write FOLDER";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("cluster-costs: {reason}");
            ExitCode::FAILURE
        }
    }
}
