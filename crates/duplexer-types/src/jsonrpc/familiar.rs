//! The last `_meta` that was scanned on this thread.
//!
//! A client says the same about itself in every request, and that is often the longest part of it. A JSON object ends
//! where it ends: if a text goes on with an object that has been scanned before, that object is all there is to find.

use std::cell::RefCell;

/// What is longer is scanned every time.
const KEPT: usize = 1024;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The object `rest` begins with, if it is the last one that was remembered.
pub(super) fn recognise(rest: &str) -> Option<&str> {
    LAST.with_borrow(|last| {
        let known = !last.is_empty() && rest.as_bytes().starts_with(last.as_bytes());
        known.then(|| rest.get(..last.len())).flatten()
    })
}

/// Remembers an object that was scanned and found in order.
pub(super) fn remember(object: &str) {
    if object.len() <= KEPT && object.starts_with('{') {
        LAST.with_borrow_mut(|last| {
            last.clear();
            last.push_str(object);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_object_is_recognised() {
        assert_eq!(recognise("{}"), None);
        remember(r#"{"a":1}"#);
        assert_eq!(recognise(r#"{"a":1},"b":2}"#), Some(r#"{"a":1}"#));
        for other in [r#"{"a":12}"#, r#"{"a":1 }"#, r#"{"a":1"#, "", "1"] {
            assert_eq!(recognise(other), None, "{other}");
        }
        remember("12");
        remember(&format!(r#"{{"a":"{}"}}"#, "x".repeat(KEPT)));
        assert_eq!(recognise(r#"{"a":1}"#), Some(r#"{"a":1}"#), "what cannot be kept does not replace it");
    }
}
