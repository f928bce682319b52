//! Contents of files and directories.

use std::io;
use std::path::Path;

use crate::kernel::outcome::Outcome;
use serde::Serialize;

use super::contents::{AsJson, Loaded, ResourceMeta, ResourceOutput};
use super::error::ResourceError;
use crate::catalog::function::Seal;

/// Media types of common file extensions.
const MIME_TYPES: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("ico", "image/x-icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("py", "text/x-python"),
    ("rs", "text/x-rust"),
    ("sh", "text/x-shellscript"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("ts", "text/x-typescript"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// Returns the media type of a file, by its extension.
pub(crate) fn mime_type(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    MIME_TYPES.iter().find(|(known, _)| *known == ending).map(|(_, mime_type)| *mime_type)
}

fn is_textual(mime_type: &str) -> bool {
    mime_type.starts_with("text/")
        || ["json", "xml", "yaml", "toml", "javascript"].iter().any(|end| mime_type.ends_with(end))
}

/// Reads a file: as text if its media type is textual, or unknown and the file is valid UTF-8; as bytes otherwise. Removes
/// a byte order mark.
pub(crate) async fn read_file(path: &Path) -> io::Result<Loaded> {
    let bytes = tokio::fs::read(path).await?;
    if mime_type(path).is_some_and(|mime_type| !is_textual(mime_type)) {
        return Ok(Loaded::Bytes(bytes));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Loaded::Text(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned)),
        Err(error) => Loaded::Bytes(error.into_bytes()),
    })
}

/// Reads a file below a directory, or lists a directory below it.
pub(crate) async fn read_below(base: &Path, relative: &str) -> io::Result<Below> {
    if relative.split(['/', '\\']).any(is_hidden) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let path = crate::catalog::path::join(base, relative).await?;
    if tokio::fs::metadata(&path).await?.is_dir() {
        return list_directory(&path).await.map(|entries| Below::Directory(AsJson(entries)));
    }
    let mime_type = mime_type(&path);
    read_file(&path).await.map(|loaded| Below::File(loaded, mime_type))
}

pub(crate) enum Below {
    File(Loaded, Option<&'static str>),
    Directory(AsJson<Vec<Entry>>),
}

impl ResourceOutput for Below {
    fn into_contents(self, uri: &str, meta: ResourceMeta<'_>, seal: Seal) -> Result<Outcome, ResourceError> {
        match self {
            Self::File(loaded, mime_type) => {
                let mime_type = meta.mime_type.or(mime_type);
                loaded.into_contents(uri, ResourceMeta { mime_type, ..meta }, seal)
            }
            Self::Directory(entries) => entries.into_contents(uri, meta, seal),
        }
    }
}

/// One entry of a directory.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

/// Hidden files are neither listed nor read. `.` and `..` are not names of files.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.') && name != "." && name != ".."
}

/// Lists the entries of a directory by name, without hidden files.
pub(crate) async fn list_directory(path: &Path) -> io::Result<Vec<Entry>> {
    let mut reading = tokio::fs::read_dir(path).await?;
    let mut entries = Vec::new();
    while let Some(entry) = reading.next_entry().await? {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if is_hidden(&name) {
            continue;
        }
        let metadata = entry.metadata().await?;
        let (kind, size) =
            if metadata.is_dir() { ("directory", None) } else { ("file", Some(metadata.len())) };
        entries.push(Entry { name, kind, size });
    }
    entries.sort_by(|one, two| one.name.cmp(&two.name));
    Ok(entries)
}
