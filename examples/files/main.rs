//! A file server: reads files in the folders that the client shares (its roots), and never outside of them.
//!
//! Run: `cargo run -p duplexer-examples --bin files -- FOLDER`; without a folder the roots of the client count.
//! Try: `duplexer call read path=README.md -- target/debug/files .`
//! Then try to escape: `path=../secret`, `path=/etc/passwd`, or a symbolic link that leads out.
//! To offer a folder as resources instead of tools, `ServerBuilder::directory` is one line.

use std::path::{Component, Path, PathBuf};

use duplexer::Context;
use duplexer::prelude::*;
use tokio::fs;
use url::Url;

/// Larger files would fill the context of a model.
const MAX_BYTES: u64 = 256 * 1024;

/// The folder from the command line, if there is one.
struct Folder(Option<PathBuf>);

/// Returns the folders that can be read.
async fn folders(cx: &Context<Folder>) -> Result<Vec<PathBuf>, ToolError> {
    if let Some(folder) = &cx.state().0 {
        return Ok(vec![folder.clone()]);
    }
    let roots = cx.roots("folders").await?;
    Ok(roots.iter().filter_map(|root| Url::parse(&root.uri).ok()?.to_file_path().ok()).collect())
}

/// Returns the real path of a relative one, if it is inside one of the folders.
async fn find(cx: &Context<Folder>, path: &str) -> Result<PathBuf, ToolError> {
    // Without `..` and without a root, before anything is looked up.
    if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(ToolError::new("Give a path inside a shared folder, without `..`."));
    }
    for folder in folders(cx).await? {
        let (Ok(folder), Ok(found)) =
            (fs::canonicalize(&folder).await, fs::canonicalize(folder.join(path)).await)
        else {
            continue;
        };
        // Both are free of links now, so a link cannot lead out of the folder.
        if found.starts_with(folder) {
            return Ok(found);
        }
    }
    Err(ToolError::new(format!("No shared folder has `{path}`; `list` shows what there is.")))
}

/// Lists the entries of a folder. Folders end with a slash.
#[tool(read_only)]
async fn list(cx: Context<Folder>, #[default(".")] path: String) -> Result<Vec<String>, ToolError> {
    let mut entries = fs::read_dir(find(&cx, &path).await?).await?;
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await? {
        let slash = if entry.file_type().await?.is_dir() { "/" } else { "" };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    Ok(names)
}

/// Reads a text file.
#[tool(read_only)]
async fn read(cx: Context<Folder>, path: String) -> Result<String, ToolError> {
    let file = find(&cx, &path).await?;
    let facts = fs::metadata(&file).await?;
    if !facts.is_file() || facts.len() > MAX_BYTES {
        return Err(ToolError::new(format!("`{path}` is not a file of at most {MAX_BYTES} bytes.")));
    }
    // The text of an I/O error goes to the model: it can say "not found" or "permission denied".
    Ok(fs::read_to_string(file).await?)
}

fn main() -> Result<(), BoxError> {
    let folder = Folder(std::env::args_os().nth(1).map(PathBuf::from));
    let server = Server::builder("files", "1.0.0")
        .instructions("Paths are relative to the folders that the user shares.")
        .state(folder)
        .tool(list)
        .tool(read)
        .build()?;
    Ok(run_stdio(&server)?)
}
