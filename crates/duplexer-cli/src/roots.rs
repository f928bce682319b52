//! The folders of `--root`, as the server gets them.

use std::path::Path;

use duplexer::types::roots::Root;
use url::Url;

use crate::failure::Failure;

/// Returns the root of a folder, which must exist.
pub(crate) fn root(folder: &Path) -> Result<Root, Failure> {
    let wrong = |reason: &str| Failure::usage(format!("--root {}: {reason}", folder.display()));
    let absolute = folder.canonicalize().map_err(|error| wrong(&error.to_string()))?;
    if !absolute.is_dir() {
        return Err(wrong("not a folder"));
    }
    let uri = Url::from_file_path(&absolute).map_err(|()| wrong("it has no file:// address"))?;
    let root = Root::new(uri);
    Ok(match absolute.file_name() {
        Some(name) => root.name(name.to_string_lossy()),
        None => root,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_becomes_a_file_uri() {
        let folder = std::env::temp_dir().join(format!("duplexer {} root", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let root = root(&folder).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        assert!(root.uri.starts_with("file:///") && root.uri.ends_with("%20root"), "{}", root.uri);
        assert!(root.name.unwrap().starts_with("duplexer "));
    }

    #[test]
    fn what_is_no_folder_is_named() {
        let check = |path: &str, reason: &str| {
            let text = root(Path::new(path)).unwrap_err().to_string();
            assert!(text.starts_with(&format!("--root {path}: ")) && text.contains(reason), "{text}");
        };
        check("no/such/folder", "");
        check("Cargo.toml", "not a folder");
    }
}
