//! A minimal image and a minimal sound.

use duplexer::types::content::Content;

/// One red pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A WAV file without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

pub(crate) fn picture() -> Content {
    Content::image(PNG, "image/png")
}

pub(crate) fn sound() -> Content {
    Content::audio(WAV, "audio/wav")
}
