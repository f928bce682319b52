//! Several servers as one: their tools, prompts and resources in one list, and calls routed to the server that has them.
//!
//! A server that fails does not fail the others. Names of the group are made by a function of server and name.

mod changes;
mod routes;

use std::fmt;
use std::sync::Arc;

use duplexer_types::json::JsonObject;
use duplexer_types::prompt::{GetPromptResult, PromptDefinition};
use duplexer_types::resource::{ReadResourceResult, ResourceDefinition};
use duplexer_types::tool::{CallToolResult, ToolDefinition};
use tokio::task::JoinSet;

pub use changes::GroupChanges;
use routes::{Kind, Routes};

use super::{Client, ClientBuilder, ClientError, IntoArguments, McpConfig, OpenError, OpenWith as _, Target};

type Naming = Arc<dyn Fn(&str, &str) -> String + Send + Sync>;

/// Sessions with several servers.
///
/// ```
/// use duplexer::client::prelude::*;
/// use serde_json::json;
///
/// # /// Forecasts.
/// # #[duplexer::tool]
/// # async fn forecast(city: String) -> String { format!("Rain in {city}") }
/// # #[tokio::main]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let weather = "https://weather.example.com/mcp";
/// # let server = duplexer::Server::builder("weather", "1.0.0").tool(forecast).build()?;
/// # let server = duplexer::http::StreamableHttp::new(server).bind("127.0.0.1:0").await?;
/// # let weather = format!("http://{}/mcp", server.local_addr()?);
/// # let serving = tokio::spawn(server.serve_until(std::future::pending()));
/// // `McpConfig::read("mcp.json")` reads a file.
/// let config = McpConfig::parse(r#"{"mcpServers": {"files": {"command": "/no/such/program"}}}"#)?;
/// let group = ClientGroup::builder(Client::builder("agent", "1"))
///     .config(&config)
///     .server("weather", weather)
///     .connect()
///     .await?;
/// for (server, failure) in group.failures() {
///     eprintln!("{server}: {failure}");
/// }
/// assert_eq!(group.tools().await.items.len(), 1);
/// let forecast = group.call_tool("weather__forecast", json!({"city": "Bonn"})).await?;
/// assert_eq!(forecast.to_text(), "Rain in Bonn");
/// group.close().await;
/// # Ok(())
/// # }
/// ```
pub struct ClientGroup {
    members: Vec<(String, Client)>,
    failures: Vec<(String, OpenError)>,
    naming: Naming,
    routes: Routes,
}

/// Items of all servers of a group, and the failures of servers that could not list theirs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listing<T> {
    /// The items, with their names in the group, in the order of the servers.
    pub items: Vec<T>,
    /// The failures, by the name of the server.
    pub failures: Vec<(String, GroupError)>,
}

/// Why a group could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// Two servers of the group have this name.
    #[error("the group has two servers with the name `{0}`")]
    DuplicateServer(String),
    /// Two servers have an item with this name in the group. The first keeps it.
    #[error("`{name}` of the server `{server}` has the same name as an item of the server `{first}`")]
    DuplicateName {
        /// The name in the group.
        name: String,
        /// The server whose item is left out.
        server: String,
        /// The server whose item has the name.
        first: String,
    },
    /// No server of the group has an item with this name.
    #[error("no server of the group has the {kind} `{name}`")]
    Unknown {
        /// `tool`, `prompt` or `resource`.
        kind: &'static str,
        /// The name in the group, or the URI.
        name: String,
    },
    /// The request failed.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Builder of a [`ClientGroup`].
///
/// ```
/// use duplexer::client::prelude::*;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let group = ClientGroup::builder(Client::builder("agent", "1"))
///     .server("files", ChildCommand::new("/no/such/program"))
///     .names(|server, name| format!("{server}.{name}"))
///     .connect()
///     .await?;
/// // A server that cannot be reached does not fail the others.
/// assert_eq!(group.failures()[0].0, "files");
/// # Ok(())
/// # }
/// ```
#[must_use = "a group is created by `connect`"]
pub struct ClientGroupBuilder {
    client: ClientBuilder,
    servers: Vec<(String, Target)>,
    naming: Naming,
}

impl ClientGroupBuilder {
    /// Adds a server with its name in the group.
    pub fn server(mut self, name: impl Into<String>, target: impl Into<Target>) -> Self {
        self.servers.push((name.into(), target.into()));
        self
    }

    /// Adds all servers of a configuration file.
    pub fn config(mut self, config: &McpConfig) -> Self {
        let entries = config.entries().iter();
        self.servers.extend(entries.map(|entry| (entry.name().to_owned(), entry.into())));
        self
    }

    /// Sets how a name in the group is made of the name of the server and the name of the tool or prompt.
    /// Default: `server__name`.
    pub fn names(mut self, naming: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Self {
        self.naming = Arc::new(naming);
        self
    }

    /// Opens all sessions at the same time. A server that cannot be reached is one of [`ClientGroup::failures`].
    ///
    /// # Errors
    ///
    /// Fails only if two servers have the same name.
    pub async fn connect(self) -> Result<ClientGroup, GroupError> {
        let mut names: Vec<&str> = self.servers.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(GroupError::DuplicateServer(pair[0].to_owned()));
        }
        let mut opening = JoinSet::new();
        for (index, (name, target)) in self.servers.into_iter().enumerate() {
            let client = self.client.clone();
            opening.spawn(async move { (index, name, client.open(target).await) });
        }
        let mut opened = Vec::new();
        while let Some(joined) = opening.join_next().await {
            // A panic of a callback is logged by the runtime's hook; the others go on.
            opened.extend(joined);
        }
        opened.sort_unstable_by_key(|(index, ..)| *index);
        let (mut members, mut failures) = (Vec::new(), Vec::new());
        for (_, name, outcome) in opened {
            match outcome {
                Ok(client) => members.push((name, client)),
                Err(error) => failures.push((name, error)),
            }
        }
        Ok(ClientGroup { members, failures, naming: self.naming, routes: Routes::default() })
    }
}

impl ClientGroup {
    /// Starts a group. Each session has the settings and callbacks of `client`.
    pub fn builder(client: ClientBuilder) -> ClientGroupBuilder {
        let naming = Arc::new(|server: &str, name: &str| format!("{server}__{name}"));
        ClientGroupBuilder { client, servers: Vec::new(), naming }
    }

    /// Returns the servers whose session could not be opened, with the reasons.
    pub fn failures(&self) -> &[(String, OpenError)] {
        &self.failures
    }

    /// Returns the open sessions with their names.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Client)> {
        self.members.iter().map(|(name, client)| (name.as_str(), client))
    }

    /// Returns the session with the server of this name, for requests that the group does not route.
    pub fn client(&self, server: &str) -> Option<&Client> {
        self.members().find(|(name, _)| *name == server).map(|(_, client)| client)
    }

    /// Lists the tools of all servers, with their names in the group.
    pub async fn tools(&self) -> Listing<ToolDefinition> {
        let lists = self.collect(|client| async move { client.all_tools().await }).await;
        self.merge(Kind::Tool, lists, |tool| &mut tool.name)
    }

    /// Lists the prompts of all servers, with their names in the group.
    pub async fn prompts(&self) -> Listing<PromptDefinition> {
        let lists = self.collect(|client| async move { client.all_prompts().await }).await;
        self.merge(Kind::Prompt, lists, |prompt| &mut prompt.name)
    }

    /// Lists the resources of all servers. URIs are the same in the group.
    pub async fn resources(&self) -> Listing<ResourceDefinition> {
        let lists = self.collect(|client| async move { client.all_resources().await }).await;
        self.merge(Kind::Resource, lists, |resource| &mut resource.uri)
    }

    /// Calls a tool by its name in the group. Use [`Self::route_tool`] for a call with options.
    ///
    /// # Errors
    ///
    /// Fails if no server has the tool, and like the call itself.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl serde::Serialize,
    ) -> Result<CallToolResult, GroupError> {
        let (client, tool) = self.route_tool(name).await?;
        Ok(client.call_tool(tool, arguments).await?)
    }

    /// Returns the session and the server's own name of a tool.
    ///
    /// # Errors
    ///
    /// Fails if no server has the tool. The servers are asked for their tools if the group does not know the name yet.
    pub async fn route_tool(&self, name: &str) -> Result<(Client, String), GroupError> {
        self.route(Kind::Tool, name, async || drop(self.tools().await)).await
    }

    /// Fills a prompt by its name in the group.
    ///
    /// # Errors
    ///
    /// Fails if no server has the prompt, and like the request itself.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: impl IntoArguments,
    ) -> Result<GetPromptResult, GroupError> {
        let arguments: Option<JsonObject<String>> = arguments.into_arguments();
        let (client, prompt) = self.route(Kind::Prompt, name, async || drop(self.prompts().await)).await?;
        Ok(client.get_prompt(prompt, arguments.unwrap_or_default()).await?)
    }

    /// Reads a resource that one of the servers lists. For resources of templates use [`Self::client`].
    ///
    /// # Errors
    ///
    /// Fails if no server lists the resource, and like the request itself.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, GroupError> {
        let (client, uri) = self.route(Kind::Resource, uri, async || drop(self.resources().await)).await?;
        Ok(client.read_resource(uri).await?)
    }

    /// Closes all sessions at the same time.
    pub async fn close(&self) {
        let mut closing = JoinSet::new();
        for (name, client) in self.members.clone() {
            closing.spawn(async move {
                if let Err(error) = client.close().await {
                    tracing::debug!(%error, server = name, "the session of a group ended with an error");
                }
            });
        }
        while closing.join_next().await.is_some() {}
    }

    async fn route(
        &self,
        kind: Kind,
        name: &str,
        list: impl AsyncFnOnce(),
    ) -> Result<(Client, String), GroupError> {
        let mut found = self.routes.find(kind, name);
        if found.is_none() {
            list().await;
            found = self.routes.find(kind, name);
        }
        let member = found.and_then(|(index, own)| Some((self.members.get(index)?.1.clone(), own)));
        member.ok_or_else(|| GroupError::Unknown { kind: kind.name(), name: name.to_owned() })
    }

    /// Requests something of all servers at the same time. Returns the outcomes in the order of the servers.
    async fn collect<T, F>(&self, request: impl Fn(Client) -> F) -> Vec<Result<Vec<T>, ClientError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<Vec<T>, ClientError>> + Send + 'static,
    {
        let mut requests = JoinSet::new();
        for (index, (_, client)) in self.members.iter().enumerate() {
            let request = request(client.clone());
            requests.spawn(async move { (index, request.await) });
        }
        let mut outcomes: Vec<_> = requests.join_all().await;
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Gives the items of all servers their names in the group, and remembers where they are.
    fn merge<T>(
        &self,
        kind: Kind,
        lists: Vec<Result<Vec<T>, ClientError>>,
        name_of: impl Fn(&mut T) -> &mut String,
    ) -> Listing<T> {
        let (mut items, mut failures) = (Vec::new(), Vec::new());
        let mut table = routes::Table::default();
        for (index, ((server, _), list)) in self.members.iter().zip(lists).enumerate() {
            let list = match list {
                Ok(list) => list,
                Err(error) => {
                    failures.push((server.clone(), error.into()));
                    // What was known of the server stays known.
                    self.routes.keep(kind, index, &mut table);
                    continue;
                }
            };
            for mut item in list {
                let own = name_of(&mut item).clone();
                let name = if kind == Kind::Resource { own.clone() } else { (self.naming)(server, &own) };
                match table.insert(name.clone(), index, own) {
                    Ok(()) => {
                        *name_of(&mut item) = name;
                        items.push(item);
                    }
                    Err(first) => {
                        let first =
                            self.members.get(first).map(|(first, _)| first.clone()).unwrap_or_default();
                        let error = GroupError::DuplicateName { name, server: server.clone(), first };
                        failures.push((server.clone(), error));
                    }
                }
            }
        }
        self.routes.replace(kind, table);
        Listing { items, failures }
    }
}

impl fmt::Debug for ClientGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientGroup")
            .field("members", &self.members)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientGroupBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<&str> = self.servers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ClientGroupBuilder").field("servers", &servers).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
