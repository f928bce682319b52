//! The requests of the protocol by name, and lists page by page.

use std::collections::HashSet;

use duplexer_types::completion::CompleteParams;
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::logging::{LoggingLevel, SetLevelParams};
use duplexer_types::methods::{
    CompletionComplete, LoggingSetLevel, Ping, PromptsGet, PromptsList, Request, ResourcesList,
    ResourcesRead, ResourcesSubscribe, ResourcesTemplatesList, ResourcesUnsubscribe, ServerDiscover,
    ToolsCall, ToolsList,
};
use duplexer_types::page::PaginatedParams;
use duplexer_types::prompt::{GetPromptParams, Prompt};
use duplexer_types::resource::{
    ReadResourceParams, Resource, ResourceTemplate, SubscribeParams, UnsubscribeParams,
};
use duplexer_types::tool::{CallToolParams, Tool};

use super::{Call, Client, ClientError};

impl Client {
    /// A page of the server's tools: the first, unless [`Call::cursor`] says which.
    pub fn list_tools(&self) -> Call<ToolsList> {
        self.request(PaginatedParams::new())
    }

    /// Has a tool do its work.
    pub fn call_tool(&self, params: CallToolParams) -> Call<ToolsCall> {
        self.request(params)
    }

    /// A page of the server's resources.
    pub fn list_resources(&self) -> Call<ResourcesList> {
        self.request(PaginatedParams::new())
    }

    /// A page of the server's resource templates.
    pub fn list_resource_templates(&self) -> Call<ResourcesTemplatesList> {
        self.request(PaginatedParams::new())
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ResourcesRead> {
        self.request(ReadResourceParams::new(uri))
    }

    /// Asks to be told when a resource changes (handshake era).
    pub fn subscribe(&self, uri: impl Into<String>) -> Call<ResourcesSubscribe> {
        self.request(SubscribeParams::new(uri))
    }

    /// Asks to be told no longer (handshake era).
    pub fn unsubscribe(&self, uri: impl Into<String>) -> Call<ResourcesUnsubscribe> {
        self.request(UnsubscribeParams::new(uri))
    }

    /// A page of the server's prompts.
    pub fn list_prompts(&self) -> Call<PromptsList> {
        self.request(PaginatedParams::new())
    }

    /// Fills a prompt.
    pub fn get_prompt(&self, params: GetPromptParams) -> Call<PromptsGet> {
        self.request(params)
    }

    /// Asks what an argument could be.
    pub fn complete(&self, params: CompleteParams) -> Call<CompletionComplete> {
        self.request(params)
    }

    /// From which level on the server is to send log messages (handshake era).
    ///
    /// In the envelope era every request says it: see
    /// [`ClientOptions::log_level`](super::ClientOptions::log_level).
    pub fn set_log_level(&self, level: LoggingLevel) -> Call<LoggingSetLevel> {
        self.request(SetLevelParams::new(level))
    }

    /// Whether anybody is there (handshake era).
    pub fn ping(&self) -> Call<Ping> {
        self.request(EmptyParams::new())
    }

    /// What the server is like (envelope era).
    pub fn discover(&self) -> Call<ServerDiscover> {
        self.request(EmptyParams::new())
    }

    /// All tools of the server.
    pub async fn all_tools(&self) -> Result<Vec<Tool>, ClientError> {
        self.all::<ToolsList, _>(|page| (page.tools, page.next_cursor)).await
    }

    /// All resources of the server.
    pub async fn all_resources(&self) -> Result<Vec<Resource>, ClientError> {
        self.all::<ResourcesList, _>(|page| (page.resources, page.next_cursor)).await
    }

    /// All resource templates of the server.
    pub async fn all_resource_templates(&self) -> Result<Vec<ResourceTemplate>, ClientError> {
        self.all::<ResourcesTemplatesList, _>(|page| (page.resource_templates, page.next_cursor)).await
    }

    /// All prompts of the server.
    pub async fn all_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        self.all::<PromptsList, _>(|page| (page.prompts, page.next_cursor)).await
    }

    /// Pages until one names no next: how many entries a page has, and what its cursor looks like, says nothing.
    async fn all<M, T>(
        &self,
        open: impl Fn(M::Result) -> (Vec<T>, Option<String>),
    ) -> Result<Vec<T>, ClientError>
    where
        M: Request<Params = PaginatedParams> + 'static,
    {
        let mut all = Vec::new();
        let mut seen = HashSet::new();
        let mut params = PaginatedParams::new();
        loop {
            let (entries, next) = open(self.request::<M>(params).await?);
            all.extend(entries);
            let Some(cursor) = next else { return Ok(all) };
            if !seen.insert(cursor.clone()) {
                return Err(ClientError::RepeatedCursor(M::METHOD));
            }
            params = PaginatedParams::new().cursor(cursor);
        }
    }
}
