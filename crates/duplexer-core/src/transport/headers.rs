//! Headers of a message, read in place: a transport that has a header map need not copy it.

use std::fmt;
use std::sync::Arc;

/// The headers of a message, as a transport stores them.
pub trait HeaderSource: Send + Sync + 'static {
    /// Calls `each` with every value of a header, in order of arrival. The name is case-insensitive.
    ///
    /// Values that are not text are skipped.
    fn values<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a str));
}

impl HeaderSource for Vec<(String, String)> {
    fn values<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a str)) {
        for (_, value) in self.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name)) {
            each(value);
        }
    }
}

/// The headers of a message. Cheap to clone.
#[derive(Clone, Default)]
pub struct Headers(Option<Arc<dyn HeaderSource>>);

impl Headers {
    /// Creates headers that are read from `source`.
    pub fn of(source: Arc<dyn HeaderSource>) -> Self {
        Self(Some(source))
    }

    /// Returns whether the transport has no headers.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the values of a header. The name is case-insensitive.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let mut found = Vec::new();
        if let Some(source) = &self.0 {
            source.values(name, &mut |value| found.push(value));
        }
        found
    }
}

impl From<Vec<(String, String)>> for Headers {
    fn from(headers: Vec<(String, String)>) -> Self {
        Self::of(Arc::new(headers))
    }
}

/// Headers may contain secrets: logs show only whether there are any.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Headers(..)" } else { "Headers" })
    }
}
