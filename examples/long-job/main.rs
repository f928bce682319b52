//! A long job: it reports progress, stops when the user cancels it, and leaves nothing half-finished behind.
//!
//! Run: `cargo run -p duplexer-examples --bin long-job -- FOLDER`; reports are written to that folder.
//! Try: `duplexer call report pages:=50 -- target/debug/long-job /tmp` and watch the progress bar.
//! Then press Ctrl-C: the call is cancelled and the unfinished file is gone.
//! `checksum` computes without ever waiting, so it runs on a thread and checks for itself whether it was cancelled.

use std::path::{Path, PathBuf};
use std::time::Duration;

use duplexer::Context;
use duplexer::prelude::*;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// The folder for reports.
struct Folder(PathBuf);

/// A file that is removed unless it is kept. A cancelled tool is dropped where it waits, and this with it.
struct Unfinished {
    path: PathBuf,
    is_kept: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing can be done about a file that cannot be removed.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Writes a report and returns where it is.
#[tool(timeout = 600)]
async fn report(
    cx: Context<Folder>,
    #[schemars(range(min = 1, max = 10_000))] pages: u32,
    /// Time per page, in milliseconds.
    #[default(100)]
    pace: u64,
) -> Result<String, ToolError> {
    let path = cx.state().0.join("report.txt");
    let mut unfinished = Unfinished { path: path.with_extension("part"), is_kept: false };
    let mut file = File::create(&unfinished.path).await?;
    for page in 1..=pages {
        // Every `await` is a place where a cancelled call ends.
        tokio::time::sleep(Duration::from_millis(pace)).await;
        file.write_all(format!("Page {page}\n").as_bytes()).await?;
        cx.progress(page).total(pages).message(&format!("page {page} of {pages}")).await;
    }
    file.flush().await?;
    tokio::fs::rename(&unfinished.path, &path).await?;
    unfinished.is_kept = true;
    Ok(path.display().to_string())
}

/// Adds up the bytes of a file many times, as a stand-in for work that keeps a processor busy.
#[tool(blocking)]
fn checksum(cx: Context<Folder>, file: String, #[default(1000)] rounds: u32) -> Result<u32, ToolError> {
    let name = Path::new(&file).file_name().ok_or_else(|| ToolError::new("Give the name of a file."))?;
    let bytes = std::fs::read(cx.state().0.join(name))?;
    let mut sum = 0_u32;
    for round in 1..=rounds {
        if cx.is_cancelled() {
            return Err(ToolError::new("Cancelled."));
        }
        sum = bytes.iter().fold(sum, |sum, byte| sum.wrapping_add(u32::from(*byte)));
        cx.progress(round).total(rounds).blocking_send();
    }
    Ok(sum)
}

fn main() -> Result<(), BoxError> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let server =
        Server::builder("reports", "1.0.0").state(Folder(folder)).tool(report).tool(checksum).build()?;
    Ok(run_stdio(&server)?)
}
