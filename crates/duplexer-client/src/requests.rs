//! The protocol's requests as methods of the client.

use duplexer_types::completion::{CompleteParams, CompletionArgument, CompletionReference};
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::logging::{LoggingLevel, SetLevelParams};
use duplexer_types::methods::{
    CompletionComplete, LoggingSetLevel, Ping, PromptsGet, PromptsList, ResourcesList, ResourcesRead,
    ResourcesSubscribe, ResourcesTemplatesList, ResourcesUnsubscribe, ServerDiscover, SkillsGet, ToolsCall,
    ToolsList,
};
use duplexer_types::page::PaginatedParams;
use duplexer_types::prompt::GetPromptParams;
use duplexer_types::resource::{ReadResourceParams, SubscribeParams, UnsubscribeParams};
use duplexer_types::skill::GetSkillParams;
use duplexer_types::tool::CallToolParams;
use serde::Serialize;

use super::arguments::tool_arguments;
use super::{Call, Client, IntoArguments};

impl Client {
    /// Calls a tool (`tools/call`). The arguments are anything that serializes as a JSON object, or `()` for none.
    ///
    /// The call fails when it is awaited if the arguments are not an object. See [`Call`] for its options, and
    /// [`Call::structured`] and [`Call::text`] for other forms of its result.
    ///
    /// ```no_run
    /// # use duplexer_client::{Client, ClientError};
    /// # async fn example(client: Client) -> Result<(), ClientError> {
    /// use serde_json::json;
    /// let sum = client.call_tool("add", json!({"a": 1, "b": 2})).await?;
    /// let now = client.call_tool("now", ()).await?;
    /// # Ok(()) }
    /// ```
    pub fn call_tool(&self, name: impl Into<String>, arguments: impl Serialize) -> Call<ToolsCall> {
        let mut params = CallToolParams::new(name);
        match tool_arguments(&arguments) {
            Ok(arguments) => params.arguments = arguments,
            Err(fault) => return self.call_tool_with(params).fault(fault),
        }
        self.call_tool_with(params)
    }

    /// Calls a tool (`tools/call`) with complete parameters, for example the input responses of a manual round.
    pub fn call_tool_with(&self, params: CallToolParams) -> Call<ToolsCall> {
        self.request(params)
    }

    /// Requests one page of tools (`tools/list`): the first, unless [`Call::cursor`] selects another.
    pub fn list_tools(&self) -> Call<ToolsList> {
        self.request(PaginatedParams::new())
    }

    /// Requests one page of resources (`resources/list`).
    pub fn list_resources(&self) -> Call<ResourcesList> {
        self.request(PaginatedParams::new())
    }

    /// Requests one page of resource templates (`resources/templates/list`).
    pub fn list_resource_templates(&self) -> Call<ResourcesTemplatesList> {
        self.request(PaginatedParams::new())
    }

    /// Reads a resource (`resources/read`).
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ResourcesRead> {
        self.read_resource_with(ReadResourceParams::new(uri))
    }

    /// Reads a resource (`resources/read`) with complete parameters.
    pub fn read_resource_with(&self, params: ReadResourceParams) -> Call<ResourcesRead> {
        self.request(params)
    }

    /// Subscribes to changes of a resource (`resources/subscribe`, handshake era).
    ///
    /// In the envelope era see [`Client::listen`].
    pub fn subscribe(&self, uri: impl Into<String>) -> Call<ResourcesSubscribe> {
        self.request(SubscribeParams::new(uri))
    }

    /// Ends a subscription (`resources/unsubscribe`, handshake era).
    pub fn unsubscribe(&self, uri: impl Into<String>) -> Call<ResourcesUnsubscribe> {
        self.request(UnsubscribeParams::new(uri))
    }

    /// Requests one page of prompts (`prompts/list`).
    pub fn list_prompts(&self) -> Call<PromptsList> {
        self.request(PaginatedParams::new())
    }

    /// Fills a prompt (`prompts/get`). Use `()` for a prompt without arguments.
    ///
    /// ```no_run
    /// # use duplexer_client::{Client, ClientError};
    /// # async fn example(client: Client) -> Result<(), ClientError> {
    /// let filled = client.get_prompt("review", [("language", "Rust")]).await?;
    /// # Ok(()) }
    /// ```
    pub fn get_prompt(&self, name: impl Into<String>, arguments: impl IntoArguments) -> Call<PromptsGet> {
        let mut params = GetPromptParams::new(name);
        params.arguments = arguments.into_arguments();
        self.get_prompt_with(params)
    }

    /// Fills a prompt (`prompts/get`) with complete parameters.
    pub fn get_prompt_with(&self, params: GetPromptParams) -> Call<PromptsGet> {
        self.request(params)
    }

    /// Requests the entry of a skill (`skills/get`) by the URI of its `SKILL.md`. It reads nothing of the skill.
    pub fn get_skill(&self, uri: impl Into<String>) -> Call<SkillsGet> {
        self.request(GetSkillParams::new(uri))
    }

    /// Requests values for an argument (`completion/complete`) whose current text is `value`.
    ///
    /// ```no_run
    /// # use duplexer_client::{Client, ClientError};
    /// # async fn example(client: Client) -> Result<(), ClientError> {
    /// use duplexer_types::completion::PromptReference;
    /// let found = client.complete(PromptReference::new("review"), "language", "ru").await?;
    /// # Ok(()) }
    /// ```
    pub fn complete(
        &self,
        reference: impl Into<CompletionReference>,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Call<CompletionComplete> {
        self.complete_with(CompleteParams::new(reference, CompletionArgument::new(argument, value)))
    }

    /// Requests values for an argument (`completion/complete`) with complete parameters, for example with resolved
    /// arguments.
    pub fn complete_with(&self, params: CompleteParams) -> Call<CompletionComplete> {
        self.request(params)
    }

    /// Sets the minimum level of the server's log messages (`logging/setLevel`, handshake era).
    ///
    /// In the envelope era every request carries the level: see
    /// [`ClientBuilder::log_level`](super::ClientBuilder::log_level).
    pub fn set_log_level(&self, level: LoggingLevel) -> Call<LoggingSetLevel> {
        self.request(SetLevelParams::new(level))
    }

    /// Checks that the server responds (`ping`, handshake era).
    pub fn ping(&self) -> Call<Ping> {
        self.request(EmptyParams::new())
    }

    /// Requests the description of the server (`server/discover`, envelope era).
    pub fn discover(&self) -> Call<ServerDiscover> {
        self.request(EmptyParams::new())
    }
}
