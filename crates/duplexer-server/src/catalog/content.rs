//! Content from files.

use std::io;
use std::path::Path;

use duplexer_types::content::Content;

use crate::catalog::resource::{mime_type, read_file};

/// Content from files, for tools and prompts that show them.
pub trait FileContent: Sized {
    /// A picture, sound or text, by what the file's name says it is. Anything else is better told as a resource, and an
    /// error here.
    ///
    /// ```
    /// # use duplexer_server::FileContent;
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
                Ok(Self::image_bytes(tokio::fs::read(path).await?, kind.unwrap_or_default()))
            }
            Some(("audio", _)) => {
                Ok(Self::audio_bytes(tokio::fs::read(path).await?, kind.unwrap_or_default()))
            }
            _ => match read_file(path).await?.into_text() {
                Some(text) => Ok(Self::text(text)),
                None => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "neither a picture nor sound nor text: offer it as a resource",
                )),
            },
        }
    }
}
