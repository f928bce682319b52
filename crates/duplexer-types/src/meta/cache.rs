//! Cache of the last `_meta`, one per thread and use.
//!
//! A client sends the same `_meta` with every request, and it is often the longest part of one. A JSON object is
//! self-delimiting, so a text that starts with the cached object contains exactly that object.

/// Maximum length of a cached `_meta`, in bytes. A longer one is read every time.
const MAX_CACHED: usize = 1024;

/// The last `_meta` that was stored, with what its reader made of it.
#[derive(Debug)]
pub struct MetaCache<T> {
    text: String,
    value: Option<T>,
}

impl<T> MetaCache<T> {
    /// Creates an empty cache.
    pub const fn new() -> Self {
        Self { text: String::new(), value: None }
    }

    /// Returns the value that was stored for this `_meta`.
    pub fn get(&self, meta: &str) -> Option<&T> {
        if self.text == meta { self.value.as_ref() } else { None }
    }

    /// Returns the cached `_meta`, if `text` starts with it.
    pub fn prefix<'t>(&self, text: &'t str) -> Option<&'t str> {
        let is_cached = self.value.is_some() && text.as_bytes().starts_with(self.text.as_bytes());
        is_cached.then(|| text.get(..self.text.len())).flatten()
    }

    /// Replaces the cached `_meta`, unless the new one is too long or not an object.
    pub fn store(&mut self, meta: &str, value: T) {
        if meta.len() <= MAX_CACHED && meta.starts_with('{') {
            self.text.clear();
            self.text.push_str(meta);
            self.value = Some(value);
        }
    }
}

impl<T> Default for MetaCache<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_object_is_found() {
        let mut cache = MetaCache::new();
        assert_eq!((cache.prefix("{}"), cache.prefix(""), cache.get("")), (None, None, None));
        cache.store(r#"{"a":1}"#, 7);
        assert_eq!(cache.prefix(r#"{"a":1},"b":2}"#), Some(r#"{"a":1}"#));
        assert_eq!(cache.get(r#"{"a":1}"#), Some(&7));
        assert_eq!(cache.get(r#"{"a":1},"b":2}"#), None);
        for other in [r#"{"a":12}"#, r#"{"a":1 }"#, r#"{"a":1"#, "", "1"] {
            assert_eq!((cache.prefix(other), cache.get(other)), (None, None), "{other}");
        }
        cache.store("12", 8);
        cache.store(&format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_CACHED)), 9);
        assert_eq!(cache.get(r#"{"a":1}"#), Some(&7), "what cannot be stored replaces nothing");
    }
}
