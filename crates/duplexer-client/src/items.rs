//! Lists over all their pages: as a stream of items, or collected.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::future::poll_fn;
use std::hash::BuildHasher;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use duplexer_types::error::ErrorCode;
use duplexer_types::methods::{
    Method, PromptsList, Request, ResourcesList, ResourcesTemplatesList, SkillsList, ToolsList,
};
use duplexer_types::page::PaginatedParams;
use duplexer_types::prompt::PromptDefinition;
use duplexer_types::resource::{ResourceDefinition, ResourceTemplate};
use duplexer_types::skill::Skill;
use duplexer_types::tool::ToolDefinition;
use futures_core::Stream;

use super::cache::CacheMode;
use super::{Client, ClientError};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::CallError;

/// Maximum size of a collected list, as JSON text.
const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

/// Stream of the items of a list. It requests a page when the items of the page before have been read.
///
/// It ends after an error. Neither the number of items of a page nor the form of a cursor ends a list.
///
/// ```
/// use duplexer::client::prelude::*;
/// use duplexer::{Server, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let server = Server::builder("calculator", "1.0.0")
///     .page_size(1)
///     .tool(Tool::new("add", || async {}))
///     .tool(Tool::new("subtract", || async {}))
///     .build()?;
/// let client = Client::builder("my-agent", "1.0").connect(server.in_process()).await?;
/// let mut tools = client.tools();
/// let mut names = Vec::new();
/// while let Some(tool) = tools.next().await {
///     names.push(tool?.name);
/// }
/// assert_eq!(names, ["add", "subtract"]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a page is requested when the stream is read"]
pub struct Items<T> {
    method: Method,
    max_pages: usize,
    fetch: Fetch<T>,
    next: Next<T>,
    cache: CacheMode,
    page: std::vec::IntoIter<T>,
    /// Hashes of the cursors so far, because a cursor can be long.
    seen: HashSet<u64>,
    hasher: RandomState,
}

type Fetch<T> = Box<dyn Fn(PaginatedParams, CacheMode) -> PendingPage<T> + Send + Sync>;
/// Items of a page, and the size of its text.
type SizedItems<T> = Result<(Vec<T>, usize), ClientError>;
/// Takes items and next cursor out of a result.
type Open<R, T> = fn(R) -> (Vec<T>, Option<String>);
type PendingPage<T> = BoxFuture<'static, Result<Page<T>, ClientError>>;

/// One page of a list.
struct Page<T> {
    items: Vec<T>,
    cursor: Option<String>,
    bytes: usize,
}

enum Next<T> {
    Request(PaginatedParams),
    Pending(PendingPage<T>),
    None,
}

impl<T: Unpin> Items<T> {
    /// Returns the next item, or `None` at the end of the list.
    ///
    /// # Errors
    ///
    /// Fails if a page fails, with [`ClientError::RepeatedCursor`] if a cursor repeats, and with
    /// [`ClientError::TooManyPages`] if there are more pages than
    /// [`ClientBuilder::max_pages`](super::ClientBuilder::max_pages) allows.
    pub async fn next(&mut self) -> Option<Result<T, ClientError>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Waits for the next page. Returns its items and its size, or `None` after the last page.
    fn poll_page(&mut self, cx: &mut Context<'_>) -> Poll<Option<SizedItems<T>>> {
        loop {
            match std::mem::replace(&mut self.next, Next::None) {
                Next::None => return Poll::Ready(None),
                Next::Request(params) => self.next = Next::Pending((self.fetch)(params, self.cache)),
                Next::Pending(mut pending) => match pending.as_mut().poll(cx) {
                    Poll::Pending => {
                        self.next = Next::Pending(pending);
                        return Poll::Pending;
                    }
                    Poll::Ready(page) => {
                        let page = page.and_then(|page| self.advance(page));
                        return Poll::Ready(Some(page));
                    }
                },
            }
        }
    }

    /// Decides which page is next.
    fn advance(&mut self, page: Page<T>) -> SizedItems<T> {
        if let Some(cursor) = page.cursor {
            if !self.seen.insert(self.hasher.hash_one(&cursor)) {
                return Err(ClientError::RepeatedCursor(self.method));
            }
            // Every page but the last has added a cursor.
            if self.seen.len() >= self.max_pages {
                return Err(ClientError::TooManyPages { method: self.method, pages: self.seen.len() });
            }
            self.next = Next::Request(PaginatedParams::new().cursor(cursor));
        }
        Ok((page.items, page.bytes))
    }

    /// Collects all items, up to a maximum size.
    async fn collect(mut self) -> Result<Vec<T>, ClientError> {
        let (mut all, mut total) = (Vec::new(), 0);
        while let Some(page) = poll_fn(|cx| self.poll_page(cx)).await {
            let (items, bytes) = match page {
                Err(error) if self.has_invalid_cursor(&error) => {
                    self.restart();
                    (all, total) = (Vec::new(), 0);
                    continue;
                }
                page => page?,
            };
            total += bytes;
            if total > MAX_LIST_BYTES {
                return Err(ClientError::ListTooLarge { method: self.method, bytes: MAX_LIST_BYTES });
            }
            all.extend(items);
        }
        Ok(all)
    }

    /// Returns whether the server refuses a cursor that can come from a cached first page.
    fn has_invalid_cursor(&self, error: &ClientError) -> bool {
        let refused = matches!(error, ClientError::Call(CallError::Rpc(error)) if error.code == ErrorCode::INVALID_PARAMS);
        refused && !self.seen.is_empty() && self.cache == CacheMode::Use
    }

    /// Begins again with a first page from the server.
    fn restart(&mut self) {
        self.cache = CacheMode::Refresh;
        self.seen.clear();
        self.next = Next::Request(PaginatedParams::new());
    }
}

impl<T: Unpin> Stream for Items<T> {
    type Item = Result<T, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.page.next() {
                return Poll::Ready(Some(Ok(item)));
            }
            match ready!(self.poll_page(cx)) {
                Some(Ok((items, _))) => self.page = items.into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<T> fmt::Debug for Items<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a stream of all tools of the server.
    ///
    /// ```no_run
    /// # use duplexer_client::{Client, ClientError};
    /// # async fn example(client: Client) -> Result<(), ClientError> {
    /// let mut tools = client.tools();
    /// while let Some(tool) = tools.next().await {
    ///     println!("{}", tool?.name);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn tools(&self) -> Items<ToolDefinition> {
        self.items::<ToolsList, _>(|page| (page.tools, page.next_cursor))
    }

    /// Returns a stream of all resources of the server.
    pub fn resources(&self) -> Items<ResourceDefinition> {
        self.items::<ResourcesList, _>(|page| (page.resources, page.next_cursor))
    }

    /// Returns a stream of all resource templates of the server.
    pub fn resource_templates(&self) -> Items<ResourceTemplate> {
        self.items::<ResourcesTemplatesList, _>(|page| (page.resource_templates, page.next_cursor))
    }

    /// Returns a stream of all prompts of the server.
    pub fn prompts(&self) -> Items<PromptDefinition> {
        self.items::<PromptsList, _>(|page| (page.prompts, page.next_cursor))
    }

    /// Returns a stream of the entries of all skills of the server. It reads nothing of a skill.
    pub fn skills(&self) -> Items<Skill> {
        self.items::<SkillsList, _>(|page| (page.skills, page.next_cursor))
    }

    /// Returns all tools of the server.
    ///
    /// # Errors
    ///
    /// Fails like [`Items::next`], and with [`ClientError::ListTooLarge`] if the list is larger than 64 MiB.
    pub async fn all_tools(&self) -> Result<Vec<ToolDefinition>, ClientError> {
        self.tools().collect().await
    }

    /// Returns all resources of the server.
    ///
    /// # Errors
    ///
    /// Fails like [`Client::all_tools`].
    pub async fn all_resources(&self) -> Result<Vec<ResourceDefinition>, ClientError> {
        self.resources().collect().await
    }

    /// Returns all resource templates of the server.
    ///
    /// # Errors
    ///
    /// Fails like [`Client::all_tools`].
    pub async fn all_resource_templates(&self) -> Result<Vec<ResourceTemplate>, ClientError> {
        self.resource_templates().collect().await
    }

    /// Returns all prompts of the server.
    ///
    /// # Errors
    ///
    /// Fails like [`Client::all_tools`].
    pub async fn all_prompts(&self) -> Result<Vec<PromptDefinition>, ClientError> {
        self.prompts().collect().await
    }

    /// Returns the entries of all skills of the server. It reads nothing of a skill.
    ///
    /// # Errors
    ///
    /// Fails like [`Client::all_tools`].
    pub async fn all_skills(&self) -> Result<Vec<Skill>, ClientError> {
        self.skills().collect().await
    }

    fn items<M, T>(&self, open: Open<M::Result, T>) -> Items<T>
    where
        M: Request<Params = PaginatedParams> + 'static,
        T: 'static,
    {
        let client = self.clone();
        Items {
            method: M::METHOD,
            max_pages: self.0.max_pages,
            cache: CacheMode::Use,
            fetch: Box::new(move |params, cache| {
                let call = client.request::<M>(params).cache(cache);
                Box::pin(async move {
                    let (result, bytes) = call.sized().await?;
                    let (items, cursor) = open(result);
                    Ok(Page { items, cursor, bytes })
                })
            }),
            next: Next::Request(PaginatedParams::new()),
            page: Vec::new().into_iter(),
            seen: HashSet::new(),
            hasher: RandomState::new(),
        }
    }
}
