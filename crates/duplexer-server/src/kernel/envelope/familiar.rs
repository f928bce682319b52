//! The last envelope in order that this thread has seen: clients say the same in every request, and once is enough to
//! read it.

use std::cell::RefCell;

use duplexer_types::version::ProtocolVersion;

/// What is longer is read every time.
const KEPT: usize = 1024;

struct Last {
    meta: String,
    version: ProtocolVersion,
}

thread_local! {
    static LAST: RefCell<Last> =
        const { RefCell::new(Last { meta: String::new(), version: ProtocolVersion::LATEST_ENVELOPE }) };
}

/// The revision that this `_meta` names, if it is the last one that was remembered.
pub(super) fn version(meta: &str) -> Option<ProtocolVersion> {
    LAST.with_borrow(|last| (!meta.is_empty() && last.meta == meta).then_some(last.version))
}

/// Remembers a `_meta` with which nothing is wrong.
pub(super) fn remember(meta: &str, version: ProtocolVersion) {
    if meta.len() <= KEPT {
        LAST.with_borrow_mut(|last| {
            last.meta.clear();
            last.meta.push_str(meta);
            last.version = version;
        });
    }
}
