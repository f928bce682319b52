//! Files and directories.

use std::io;
use std::path::Path;

use crate::kernel::outcome::Outcome;
use serde::Serialize;

use super::contents::{AsJson, Loaded, ResourceMeta, ResourceOutput};
use super::error::ResourceError;

/// What common endings of file names mean.
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

/// The media type that a file's name suggests.
pub(crate) fn mime_type(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    MIME_TYPES.iter().find(|(known, _)| *known == ending).map(|(_, mime_type)| *mime_type)
}

fn is_textual(mime_type: &str) -> bool {
    mime_type.starts_with("text/")
        || ["json", "xml", "yaml", "toml", "javascript"].iter().any(|end| mime_type.ends_with(end))
}

/// Text if its name says so or says nothing and it reads as such; bytes otherwise. A byte order mark is left out.
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

/// A file below a directory, or the listing of a directory there, with the media type its name suggests.
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
    fn into_contents(self, uri: &str, about: ResourceMeta<'_>) -> Result<Outcome, ResourceError> {
        match self {
            Self::File(loaded, mime_type) => {
                loaded.into_contents(uri, ResourceMeta { mime_type: about.mime_type.or(mime_type), ..about })
            }
            Self::Directory(entries) => entries.into_contents(uri, about),
        }
    }
}

/// What a directory holds.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

/// What is not listed is not read either. `.` and `..` are ways, not names.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.') && name != "." && name != ".."
}

/// The entries of a directory by name, without hidden ones.
pub(crate) async fn list_directory(path: &Path) -> io::Result<Vec<Entry>> {
    let mut reading = tokio::fs::read_dir(path).await?;
    let mut entries = Vec::new();
    while let Some(entry) = reading.next_entry().await? {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if is_hidden(&name) {
            continue;
        }
        let about = entry.metadata().await?;
        let (kind, size) = if about.is_dir() { ("directory", None) } else { ("file", Some(about.len())) };
        entries.push(Entry { name, kind, size });
    }
    entries.sort_by(|one, two| one.name.cmp(&two.name));
    Ok(entries)
}
