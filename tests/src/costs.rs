//! What shared stores cost: nodes on a store beside a node with stores in memory, in the same minute on the same machine.
//!
//! The two are loaded in turn, in short slices, and a ratio is the median over the rounds, so that other load on the machine
//! affects both. Counts come from the store itself. The program `cluster-costs` runs this.

mod connection;
mod measures;
mod process;

use std::fmt::Write as _;
use std::path::Path;

use crate::cluster::store::Store;
use measures::Measure;
use process::Process;

/// Number of nodes on the store.
const NODES: usize = 3;

/// One figure, and what it must not exceed.
#[derive(Debug)]
pub struct Figure {
    /// What was measured.
    pub what: &'static str,
    /// The value, with its unit.
    pub value: String,
    /// The bar, with its unit.
    pub bar: &'static str,
    /// Whether the bar is met.
    pub met: bool,
}

/// Measures everything. The programs are a node and a store.
pub async fn run(node: &Path, store: &Path, folder: &Path) -> Vec<Figure> {
    process::raise_open_files();
    let store = Store::start(store, &folder.join("store")).await;
    let url = format!("redis://127.0.0.1:{}", store.port);
    let memory = Process::start(node, &["--nodes", "1"]).await;
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        nodes.push(Process::start(node, &["--redis", &url]).await);
    }
    let measure = Measure::new(memory, nodes, &url).await;
    let mut figures = measure.idle().await;
    figures.extend(measure.envelope().await);
    figures.extend(measure.session().await);
    figures.extend(measure.store_time().await);
    figures.extend(measure.progress().await);
    figures.extend(measure.questions().await);
    figures.extend(measure.listeners().await);
    figures
}

/// Returns the figures as a table in Markdown.
pub fn table(figures: &[Figure]) -> String {
    let mut text = String::from("| measured | value | bar | |\n|---|---:|---:|---|\n");
    for Figure { what, value, bar, met } in figures {
        let verdict = if *met { "met" } else { "**missed**" };
        let _ = writeln!(text, "| {what} | {value} | {bar} | {verdict} |");
    }
    text
}
