//! Clients: sessions with servers over HTTP, with child processes, and in the same process.
//!
//! Most programs begin with `use duplexer::client::prelude::*;` and [`Client::open`](OpenClient::open). This module
//! re-exports `duplexer-client` and adds what needs several crates at once.

mod config;
mod group;
mod in_process;
mod open;
#[cfg(feature = "skills")]
mod skills;
#[cfg(test)]
mod tests;

pub use duplexer_client::*;

pub use config::{ConfigError, McpConfig, ServerAddress, ServerEntry};
pub use group::{ClientGroup, ClientGroupBuilder, GroupChanges, GroupError, Listing};
pub use in_process::{InProcess, ServeInProcess};
pub use open::{OpenClient, OpenError, OpenWith, Target};
#[cfg(feature = "skills")]
#[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
pub use skills::{LoadedSkill, SkillError, UseSkills};

/// Names that most clients need: `use duplexer::client::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "http-client")]
    pub use duplexer_http_client::HttpTransport;
    pub use duplexer_types::annotations::Role;
    pub use duplexer_types::elicitation::{ElicitParams, ElicitResult};
    pub use duplexer_types::json::{Json, JsonObject};
    pub use duplexer_types::roots::{ListRootsResult, Root};
    pub use duplexer_types::sampling::{CreateMessageParams, CreateMessageResult};
    pub use duplexer_types::subscription::SubscriptionFilter;
    pub use duplexer_types::tool::{CallToolParams, CallToolResult, ToolFailed};

    pub use super::RestartPolicy;
    #[cfg(feature = "skills")]
    pub use super::UseSkills as _;
    pub use super::{
        Change, Client, ClientBuilder, ClientError, ClientGroup, ConnectError, ErrorKind, McpConfig,
        Negotiation, OpenError,
    };
    pub use super::{OpenClient as _, OpenWith as _, ServeInProcess as _};
    pub use crate::transport::child::{ChildCommand, Stderr};
    pub use crate::{BoxError, McpError};
}
