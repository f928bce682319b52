//! A cache of the results of tools that only read.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::content::Content;
use duplexer_types::resource::ResourceContents;
use duplexer_types::tool::CallToolResult;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::{ToolCall, ToolMiddleware};
use crate::catalog::ToolEntry;
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;

/// Caches the results of tools that declare that they only read ([`Tool::read_only`](super::Tool::read_only)), by caller, tool
/// and arguments.
///
/// Errors are not cached, nor are results of calls that asked the client for something. A hit sends no progress and no log
/// messages. A tool that is replaced in the catalog begins anew.
///
/// ```
/// use std::time::Duration;
///
/// use duplexer::tool::ResultCache;
/// use duplexer::{Server, Tool};
///
/// let cache = ResultCache::new(Duration::from_secs(60)).max_bytes(16 << 20);
/// let forecast = Tool::new("forecast", || async { "Rain." }).read_only();
/// let server = Server::builder("weather", "1.0.0").tool_middleware(cache).tool(forecast).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ResultCache {
    shared: Arc<Mutex<Entries>>,
    lifetime: Duration,
    tools: HashMap<String, Duration>,
    limits: Limits,
    by: By,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    entries: usize,
    bytes: usize,
}

/// Who gets a result that was cached for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Caller,
    Everyone,
}

/// SHA-256 of the caller, the tool, the arguments and the revision.
type Key = [u8; 32];

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    /// In the order in which they were added. An entry that was replaced is here twice; the earlier one does not count.
    order: VecDeque<(Key, Instant)>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// The tool that made the result, and no other that has its name.
    tool: Weak<ToolEntry>,
    result: CallToolResult,
    expires: Instant,
    bytes: usize,
}

impl ResultCache {
    /// Keeps results for `lifetime`, of up to 10 000 calls and 64 MiB.
    pub fn new(lifetime: Duration) -> Self {
        Self {
            shared: Arc::default(),
            lifetime,
            tools: HashMap::new(),
            limits: Limits { entries: 10_000, bytes: 64 << 20 },
            by: By::Caller,
        }
    }

    /// Sets another lifetime for the results of one tool. With zero they are not cached.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, lifetime: Duration) -> Self {
        self.tools.insert(name.into(), lifetime);
        self
    }

    /// Sets the maximum number of results.
    #[must_use]
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.limits.entries = entries;
        self
    }

    /// Sets the maximum size of all results together.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Gives a cached result to every caller, not only to the one it was made for. Only for tools whose results do not depend on
    /// the caller.
    #[must_use]
    pub fn for_everyone(mut self) -> Self {
        self.by = By::Everyone;
        self
    }

    /// Removes all results.
    pub fn clear(&self) {
        *self.entries() = Entries::default();
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, cx: &Context, call: &ToolCall) -> Key {
        let mut hash = Sha256::new();
        let mut part = |text: Option<&str>| {
            let length = text.map_or(u64::MAX, |text| text.len() as u64);
            hash.update(length.to_le_bytes());
            hash.update(text.unwrap_or_default());
        };
        part(Some(call.name()));
        part(Some(call.arguments().as_str()));
        // The form of a structured result depends on the revision.
        part(Some(cx.protocol_version().as_str()));
        let principal = cx.principal().filter(|_| self.by == By::Caller);
        let identity = principal.map(crate::Principal::identity);
        part(identity.map(|(client, ..)| client));
        part(identity.and_then(|(_, issuer, _)| issuer));
        part(identity.and_then(|(.., subject)| subject));
        principal.into_iter().flat_map(|principal| &principal.scopes).for_each(|scope| part(Some(scope)));
        hash.finalize().into()
    }
}

impl ToolMiddleware for ResultCache {
    fn handle(&self, cx: Context, call: ToolCall) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let lifetime = self.tools.get(call.name()).copied().unwrap_or(self.lifetime);
        if !call.is_read_only() || lifetime.is_zero() || carries_answers(&cx) {
            return call.run(cx);
        }
        let key = self.key(&cx, &call);
        let tool = call.entry();
        if let Some(result) = self.entries().find(&key, &tool, Instant::now()) {
            return Box::pin(std::future::ready(Ok(Outcome::of(result))));
        }
        let cache = self.clone();
        let facts = cx.clone();
        Box::pin(async move {
            let outcome = call.run(cx).await?;
            if let Some(result) = outcome.downcast_ref::<CallToolResult>()
                && !outcome.is_error()
                && !facts.scope().has_asked()
            {
                let entry = Entry {
                    tool,
                    result: result.clone(),
                    expires: Instant::now() + lifetime,
                    bytes: size(result),
                };
                cache.entries().add(key, entry, cache.limits);
            }
            Ok(outcome)
        })
    }
}

/// Returns whether a call continues an earlier one with answers of its user.
fn carries_answers(cx: &Context) -> bool {
    let params = cx.raw_params().unwrap_or_default();
    ["inputResponses", "requestState"].iter().any(|member| params.contains(member))
}

/// Returns about how many bytes a result takes.
fn size(result: &CallToolResult) -> usize {
    let of = |content: &Content| match content {
        Content::Text(text) => text.text.len(),
        Content::Image(image) => image.data.len(),
        Content::Audio(audio) => audio.data.len(),
        Content::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text(text) => text.text.len(),
            ResourceContents::Blob(blob) => blob.blob.len(),
            ResourceContents::Other(json) => json.as_str().len(),
            _ => 0,
        },
        _ => 256,
    };
    let structured = result.structured_content.as_ref().map_or(0, |json| json.as_str().len());
    512 + structured + result.content.iter().map(|content| 128 + of(content)).sum::<usize>()
}

impl Entries {
    fn find(&self, key: &Key, tool: &Weak<ToolEntry>, now: Instant) -> Option<CallToolResult> {
        let entry = self.by_key.get(key)?;
        (entry.expires > now && entry.tool.ptr_eq(tool)).then(|| entry.result.clone())
    }

    /// Adds a result, and removes the oldest ones until the limits hold.
    fn add(&mut self, key: Key, entry: Entry, limits: Limits) {
        self.order.push_back((key, entry.expires));
        self.bytes += entry.bytes;
        if let Some(earlier) = self.by_key.insert(key, entry) {
            self.bytes -= earlier.bytes;
        }
        let now = Instant::now();
        while let Some((oldest, expires)) = self.order.front().copied() {
            let is_over = self.by_key.len() > limits.entries
                || self.bytes > limits.bytes
                || self.order.len() > 2 * limits.entries.max(1);
            if !is_over && expires > now {
                return;
            }
            self.order.pop_front();
            if self.by_key.get(&oldest).is_some_and(|entry| entry.expires == expires)
                && let Some(entry) = self.by_key.remove(&oldest)
            {
                self.bytes -= entry.bytes;
            }
        }
    }
}
