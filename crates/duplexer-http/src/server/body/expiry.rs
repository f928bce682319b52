//! End of a standing stream when the token that opened it expires.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use duplexer_server::Principal;
use tokio::time::{Sleep, sleep};

/// Timer that ends a stream with its token. Without a token, or without an expiry, it never fires.
#[derive(Default)]
pub(in crate::server) struct Expiry(Option<Pin<Box<Sleep>>>);

impl Expiry {
    /// Returns the expiry of the token of a principal.
    pub(in crate::server) fn of(principal: Option<&Principal>) -> Self {
        Self::at(principal.and_then(|principal| principal.expires_at))
    }

    pub(in crate::server) fn at(end: Option<SystemTime>) -> Self {
        let left = end.map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
        Self(left.map(|left| Box::pin(sleep(left))))
    }

    /// Ready once the token has expired.
    pub(in crate::server) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(cx))
    }
}
