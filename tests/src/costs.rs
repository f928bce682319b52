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

/// Names the bars that are missed, with what was measured. `None` if all are met.
pub fn missed(figures: &[Figure]) -> Option<String> {
    let missed: Vec<&Figure> = figures.iter().filter(|figure| !figure.met).collect();
    let mut text = format!("{} of {} bars are missed", missed.len(), figures.len());
    for Figure { what, value, bar, .. } in &missed {
        let _ = write!(text, "\n  {what}: {value}, the bar is {bar}");
    }
    (!missed.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{Figure, missed, table};

    fn figure(what: &'static str, met: bool) -> Figure {
        Figure { what, value: "3 ms".to_owned(), bar: "2 ms", met }
    }

    #[test]
    fn the_bars_that_are_missed_are_named() {
        assert_eq!(missed(&[figure("a", true)]), None);
        let figures = [figure("a", true), figure("b", false)];
        assert_eq!(missed(&figures).as_deref(), Some("1 of 2 bars are missed\n  b: 3 ms, the bar is 2 ms"));
        assert!(table(&figures).contains("| b | 3 ms | 2 ms | **missed** |"));
    }
}
