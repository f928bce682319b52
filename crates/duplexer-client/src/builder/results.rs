//! How results are collected, cached and validated, and how often input is sent for one.

use std::sync::Arc;

use super::ClientBuilder;
use crate::cache::Cache;
use crate::call::ResultValidator;

/// Results.
impl ClientBuilder {
    /// Sets the maximum number of pages that [`Client::all_tools`](crate::Client::all_tools) and its siblings read: 1000 by default.
    pub fn max_pages(mut self, pages: usize) -> Self {
        self.max_pages = pages;
        self
    }

    /// Sets the cache of results. Default: a cache of the session's own.
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets how often a request is sent again with input that the server requests: up to 10 times by default.
    pub fn max_input_rounds(mut self, rounds: u32) -> Self {
        self.callbacks.input_rounds = rounds;
        self
    }

    /// Validates every final result of a typed request before the caller gets it.
    pub fn result_validator(mut self, validator: impl ResultValidator) -> Self {
        self.validator = Some(Arc::new(validator));
        self
    }
}
