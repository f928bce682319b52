//! Contents of files and directories.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::kernel::outcome::Outcome;
use serde::Serialize;

use super::contents::{AsJson, Loaded, ResourceMeta, ResourceOutput};
use super::error::ResourceError;
use crate::catalog::function::Seal;
use crate::catalog::path::resolve;

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
pub fn mime_type(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    MIME_TYPES.iter().find(|(known, _)| *known == ending).map(|(_, mime_type)| *mime_type)
}

fn is_textual(mime_type: &str) -> bool {
    mime_type.starts_with("text/")
        || ["json", "xml", "yaml", "toml", "javascript"].iter().any(|end| mime_type.ends_with(end))
}

/// Maximum size of a file that is read, unless the server sets another.
pub(crate) const MAX_FILE_SIZE: u64 = 16 * 1024 * 1024;

/// Failure of reading a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("the file is larger than the limit of {limit} bytes")]
    TooLarge { limit: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<FileError> for ResourceError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::TooLarge { .. } => Self::ClientMessage(error.to_string()),
            FileError::Io(error) => error.into(),
        }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::TooLarge { .. } => Self::new(io::ErrorKind::FileTooLarge, error.to_string()),
            FileError::Io(error) => error,
        }
    }
}

/// Opens a regular file. Named pipes, devices and directories are not found.
fn open_regular(path: &Path) -> io::Result<File> {
    let not_found = || io::Error::new(io::ErrorKind::NotFound, "not a regular file");
    // Checked before it is opened, because opening a device can have an effect.
    if !path.metadata()?.is_file() {
        return Err(not_found());
    }
    let mut options = File::options();
    options.read(true);
    // The file can be replaced after the check. Opening a named pipe must not block then.
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_found()) }
}

/// Opens a regular file below `base`. A path that is outside, hidden or does not exist is not found.
///
/// # Errors
///
/// Fails if the file is not found, cannot be opened, or is not a regular file.
pub fn open_below(base: &Path, relative: &str) -> io::Result<File> {
    let file = open_regular(&resolve(base, relative)?)?;
    // A part of the path can become a link out of the base between the two calls. The file is below the base if a path
    // that is still leads to it.
    let now = resolve(base, relative)?.metadata()?;
    if is_same(&file.metadata()?, &now) { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Files have no portable identity: their sizes and times have to do.
#[cfg(not(unix))]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.len() == other.len() && one.modified().ok() == other.modified().ok()
}

fn read_at_most(file: File, limit: u64) -> Result<Vec<u8>, FileError> {
    let size = file.metadata()?.len();
    if size > limit {
        return Err(FileError::TooLarge { limit });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // The file can grow meanwhile, and some files do not know their size.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(FileError::TooLarge { limit }) } else { Ok(bytes) }
}

/// Runs `work` on a blocking thread. Regular files and directories end it, so the threads of the runtime will do.
async fn on_thread<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<io::Error> + Send + 'static,
{
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Reads a regular file of at most `limit` bytes.
pub(crate) async fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let path = path.to_owned();
    on_thread(move || read_at_most(open_regular(&path)?, limit)).await
}

/// Reads a regular file of at most `limit` bytes: as text if its media type is textual, or unknown and the file is valid
/// UTF-8; as bytes otherwise. Removes a byte order mark.
pub(crate) async fn read_file(path: &Path, limit: u64) -> Result<Loaded, FileError> {
    let path = path.to_owned();
    on_thread(move || load(open_regular(&path)?, mime_type(&path), limit)).await
}

fn load(file: File, mime_type: Option<&str>, limit: u64) -> Result<Loaded, FileError> {
    let bytes = read_at_most(file, limit)?;
    if mime_type.is_some_and(|mime_type| !is_textual(mime_type)) {
        return Ok(Loaded::Bytes(bytes));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(mut text) => {
            if text.starts_with(BYTE_ORDER_MARK) {
                text.drain(..BYTE_ORDER_MARK.len_utf8());
            }
            Loaded::Text(text)
        }
        Err(error) => Loaded::Bytes(error.into_bytes()),
    })
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a file below a directory, or lists a directory below it.
pub(crate) async fn read_below(base: Arc<PathBuf>, relative: String, limit: u64) -> Result<Below, FileError> {
    on_thread(move || {
        let path = resolve(&base, &relative)?;
        if path.is_dir() {
            return Ok(Below::Directory(AsJson(entries(&base, &relative)?)));
        }
        let mime_type = mime_type(&path);
        load(open_below(&base, &relative)?, mime_type, limit).map(|loaded| Below::File(loaded, mime_type))
    })
    .await
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

/// Lists the entries of a directory by name, without those that cannot be read.
pub(crate) async fn list_directory(base: Arc<PathBuf>) -> io::Result<Vec<Entry>> {
    on_thread(move || entries(&base, "")).await
}

fn entries(base: &Path, relative: &str) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in resolve(base, relative)?.read_dir()? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        // Resolved like a request for it: a link can lead outside or to a hidden file.
        let resolved = resolve(base, format!("{relative}/{name}").trim_start_matches('/'));
        let Ok(metadata) = resolved.and_then(|path| path.metadata()) else { continue };
        let (kind, size) = match metadata.file_type() {
            kind if kind.is_dir() => ("directory", None),
            kind if kind.is_file() => ("file", Some(metadata.len())),
            _ => continue,
        };
        entries.push(Entry { name, kind, size });
    }
    entries.sort_by(|one, two| one.name.cmp(&two.name));
    Ok(entries)
}
