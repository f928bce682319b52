//! Content blocks from files.

use std::io;
use std::path::Path;

use duplexer_types::content::Content;

use crate::catalog::resource::{MAX_FILE_SIZE, mime_type, read_bytes, read_file};

/// Constructor of content from a file, for [`Content`].
pub trait FileContent: Sized {
    /// Reads an image, audio or text file; the extension of its name decides which.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, has more than 16 MiB, or is of another kind. Such a file is better offered as a resource.
    ///
    /// ```
    /// # use duplexer_server::tool::FileContent;
    /// # use duplexer_server::tool::ToolError;
    /// # use duplexer_types::content::Content;
    /// async fn chart() -> Result<Content, ToolError> {
    ///     Ok(Content::file("chart.png").await?)
    /// }
    /// ```
    fn file(path: impl AsRef<Path> + Send) -> impl Future<Output = io::Result<Self>> + Send;
}

impl FileContent for Content {
    async fn file(path: impl AsRef<Path> + Send) -> io::Result<Self> {
        let path = path.as_ref();
        let kind = mime_type(path);
        match kind.and_then(|kind| kind.split_once('/')) {
            Some(("image", _)) => {
                Ok(Self::image_bytes(read_bytes(path, MAX_FILE_SIZE).await?, kind.unwrap_or_default()))
            }
            Some(("audio", _)) => {
                Ok(Self::audio_bytes(read_bytes(path, MAX_FILE_SIZE).await?, kind.unwrap_or_default()))
            }
            _ => match read_file(path, MAX_FILE_SIZE).await?.into_text() {
                Some(text) => Ok(Self::text(text)),
                None => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "neither a picture nor sound nor text: offer it as a resource",
                )),
            },
        }
    }
}
