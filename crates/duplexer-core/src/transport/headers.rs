//! Headers of a message, read where they are: a transport that has them in a map of its own need not copy them.

use std::fmt;
use std::sync::Arc;

/// Where a transport keeps the headers of a message.
pub trait HeaderSource: Send + Sync + 'static {
    /// Gives out every value under a name, which is compared without case, in the order they came.
    ///
    /// A value that is not text is passed over.
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
    /// Headers that stay where they are.
    pub fn of(source: Arc<dyn HeaderSource>) -> Self {
        Self(Some(source))
    }

    /// The values under a name, which is compared without case.
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

/// Headers may hold secrets: a log sees only whether there are any.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Headers(..)" } else { "Headers" })
    }
}
