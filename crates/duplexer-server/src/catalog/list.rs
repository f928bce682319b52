//! Lists in pages, rendered once per snapshot and revision.
//!
//! A cursor contains the number of the last listed item and nothing else. The server stores no cursors, so a list that
//! changes between two pages continues at the same position.

use std::sync::OnceLock;

use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytestring::ByteString;
use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::methods::Method;
use duplexer_types::page::PaginatedParams;
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::ResultBody;

use super::{Inner, Item, ItemTable};

/// An item that a list method returns.
pub(crate) trait Listed: Item {
    /// The listed form of the item.
    type Definition;
    /// The result of the list method.
    type Page: ResultBody;
    /// The list method.
    const METHOD: Method;

    /// Returns the listed form in a revision.
    fn definition(&self, version: ProtocolVersion) -> Self::Definition;
    fn page(definitions: Vec<Self::Definition>, next: Option<String>) -> Self::Page;
    /// Returns whether lists contain the item.
    fn is_listed(&self) -> bool {
        true
    }
    /// Marks a page as specific to one caller.
    fn private(page: Self::Page) -> Self::Page;
}

/// Rendered pages of one list, by revision and page number.
#[derive(Default)]
pub(crate) struct Pages([OnceLock<Vec<OnceLock<ByteString>>>; ProtocolVersion::ALL.len()]);

impl<T: Listed> ItemTable<T> {
    /// Handles a request for a page.
    pub(crate) fn list(&self, cx: &Context, catalog: &Inner) -> Result<Outcome, McpError> {
        let params: PaginatedParams = cx.params()?;
        let after = params.cursor.as_deref().map(read_cursor).transpose()?;
        let rest = self.after(after);
        let size = catalog.page_size;
        if catalog.scopes.hide() {
            let shown: Vec<_> =
                rest.iter().filter(|(_, item)| catalog.is_visible(cx, &**item)).cloned().collect();
            return Self::render(cx, &shown, size, T::private).map(Outcome::raw);
        }
        let start = self.len() - rest.len();
        let version = cx.protocol_version();
        // A start inside a page means that the list changed since the previous page.
        let Some(cached) =
            start.is_multiple_of(size).then(|| self.cached(version, start / size, size)).flatten()
        else {
            return Self::render(cx, rest, size, |page| page).map(Outcome::raw);
        };
        if let Some(text) = cached.get() {
            return Ok(Outcome::raw(text.clone()));
        }
        let text = Self::render(cx, rest, size, |page| page)?;
        Ok(Outcome::raw(cached.get_or_init(|| text).clone()))
    }

    fn cached(&self, version: ProtocolVersion, page: usize, size: usize) -> Option<&OnceLock<ByteString>> {
        let pages = self.pages.0.get(version as usize)?;
        let count = self.len().div_ceil(size).max(1);
        pages.get_or_init(|| (0..count).map(|_| OnceLock::new()).collect()).get(page)
    }

    fn render(
        cx: &Context,
        rest: &[(u64, std::sync::Arc<T>)],
        size: usize,
        finish: fn(T::Page) -> T::Page,
    ) -> Result<ByteString, McpError> {
        let version = cx.protocol_version();
        let page = rest.get(..size).unwrap_or(rest);
        let next = match page.last() {
            Some((number, _)) if page.len() < rest.len() => Some(write_cursor(*number)),
            _ => None,
        };
        let definitions =
            page.iter().filter(|(_, item)| item.is_listed()).map(|(_, item)| item.definition(version));
        let definitions = definitions.collect();
        cx.server().render(T::METHOD, &finish(T::page(definitions, next)), version)
    }
}

fn write_cursor(number: u64) -> String {
    URL_SAFE_NO_PAD.encode(number.to_be_bytes())
}

fn read_cursor(cursor: &str) -> Result<u64, McpError> {
    let read = || URL_SAFE_NO_PAD.decode(cursor).ok()?.try_into().ok().map(u64::from_be_bytes);
    read().ok_or_else(|| McpError::new(ErrorCode::INVALID_PARAMS, "Invalid cursor"))
}
