//! The method table: every request and notification of every revision.
//!
//! It is the only definition of which method exists where. A row holds the sender of a method in each revision, its
//! params and result types, and its properties. Methods that are not served by default (the tasks of 2025-11-25, the
//! extensions) are in it too.

use crate::completion::{CompleteParams, CompleteResult};
use crate::elicitation::{ElicitParams, ElicitResult, ElicitationCompleteParams};
use crate::lifecycle::{DiscoverResult, EmptyParams, EmptyResult, InitializeParams, InitializeResult};
use crate::logging::{LoggingMessageParams, SetLevelParams};
use crate::page::PaginatedParams;
use crate::progress::{CancelledParams, ProgressParams};
use crate::prompt::{GetPromptParams, GetPromptResult, ListPromptsResult};
use crate::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    ResourceUpdatedParams, SubscribeParams, UnsubscribeParams,
};
use crate::roots::ListRootsResult;
use crate::sampling::{CreateMessageParams, CreateMessageResult};
use crate::skill::{
    GetSkillParams, GetSkillResult, ListSkillsResult, ReadDirectoryParams, ReadDirectoryResult,
};
use crate::subscription::{
    SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult,
};
use crate::task::{
    CancelTaskParams, DetailedTask, GetTaskParams, GetTaskResult, ListTasksResult, Task, UpdateTaskParams,
};
use crate::tool::{CallToolParams, CallToolResult, ListToolsResult};
use crate::version::{ProtocolVersion, Window};
use crate::wire::{ResultBody, WireObject};

use Mark::{AsksForInput, Cacheable, Extension, LongLived, Mirrors, Paginated};

const ALWAYS: Window = Window::ALWAYS;
const HANDSHAKE: Window = Window::HANDSHAKE;
const ENVELOPE: Window = Window::ENVELOPE;
const ELICITATION: Window = Window::between(ProtocolVersion::V2025_06_18, ProtocolVersion::LATEST_HANDSHAKE);
const V2025_11: Window = Window::between(ProtocolVersion::V2025_11_25, ProtocolVersion::V2025_11_25);
const SINCE_2025_11: Window = Window::since(ProtocolVersion::V2025_11_25);

methods! {
    requests {
        // name                 protocol name               client sends     server sends   params => result                                            phase        marks
        Initialize             "initialize"                 [HANDSHAKE]      []             InitializeParams          => InitializeResult              Opening     [];
        ServerDiscover         "server/discover"            [ENVELOPE]       []             EmptyParams               => DiscoverResult                Opening     [Cacheable];
        Ping                   "ping"                       [HANDSHAKE]      [HANDSHAKE]    EmptyParams               => EmptyResult                   Always      [];
        ToolsList              "tools/list"                 [ALWAYS]         []             PaginatedParams           => ListToolsResult               Initialized [Cacheable, Paginated];
        ToolsCall              "tools/call"                 [ALWAYS]         []             CallToolParams            => CallToolResult                Initialized [AsksForInput, Mirrors("name")];
        ResourcesList          "resources/list"             [ALWAYS]         []             PaginatedParams           => ListResourcesResult           Initialized [Cacheable, Paginated];
        ResourcesTemplatesList "resources/templates/list"   [ALWAYS]         []             PaginatedParams           => ListResourceTemplatesResult   Initialized [Cacheable, Paginated];
        ResourcesRead          "resources/read"             [ALWAYS]         []             ReadResourceParams        => ReadResourceResult            Initialized [Cacheable, AsksForInput, Mirrors("uri")];
        ResourcesSubscribe     "resources/subscribe"        [HANDSHAKE]      []             SubscribeParams           => EmptyResult                   Initialized [];
        ResourcesUnsubscribe   "resources/unsubscribe"      [HANDSHAKE]      []             UnsubscribeParams         => EmptyResult                   Initialized [];
        PromptsList            "prompts/list"               [ALWAYS]         []             PaginatedParams           => ListPromptsResult             Initialized [Cacheable, Paginated];
        PromptsGet             "prompts/get"                [ALWAYS]         []             GetPromptParams           => GetPromptResult               Initialized [AsksForInput, Mirrors("name")];
        CompletionComplete     "completion/complete"        [ALWAYS]         []             CompleteParams            => CompleteResult                Initialized [];
        LoggingSetLevel        "logging/setLevel"           [HANDSHAKE]      []             SetLevelParams            => EmptyResult                   Initialized [];
        SubscriptionsListen    "subscriptions/listen"       [ENVELOPE]       []             SubscriptionsListenParams => SubscriptionsListenResult     Initialized [LongLived];
        SamplingCreateMessage  "sampling/createMessage"     []               [HANDSHAKE]    CreateMessageParams       => CreateMessageResult           Initialized [];
        RootsList              "roots/list"                 []               [HANDSHAKE]    EmptyParams               => ListRootsResult               Initialized [];
        ElicitationCreate      "elicitation/create"         []               [ELICITATION]  ElicitParams              => ElicitResult                  Initialized [];
        TasksGet               "tasks/get"                  [SINCE_2025_11]  [V2025_11]     GetTaskParams             => GetTaskResult                 Initialized [Extension, Mirrors("taskId")];
        TasksCancel            "tasks/cancel"               [SINCE_2025_11]  [V2025_11]     CancelTaskParams          => EmptyResult                   Initialized [Extension, Mirrors("taskId")];
        TasksUpdate            "tasks/update"               [ENVELOPE]       []             UpdateTaskParams          => EmptyResult                   Initialized [Extension, Mirrors("taskId")];
        TasksResult            "tasks/result"               [V2025_11]       [V2025_11]     GetTaskParams             => CallToolResult                Initialized [Extension];
        TasksList              "tasks/list"                 [V2025_11]       [V2025_11]     PaginatedParams           => ListTasksResult               Initialized [Extension];
        SkillsList             "skills/list"                [ALWAYS]         []             PaginatedParams           => ListSkillsResult              Initialized [Extension, Cacheable, Paginated];
        SkillsGet              "skills/get"                 [ALWAYS]         []             GetSkillParams            => GetSkillResult                Initialized [Extension, Cacheable];
        ResourcesDirectoryRead "resources/directory/read"   [ALWAYS]         []             ReadDirectoryParams       => ReadDirectoryResult           Initialized [Extension, Paginated];
    }
    notifications {
        Initialized               "notifications/initialized"                [HANDSHAKE] []            EmptyParams                     Opening     [];
        Cancelled                 "notifications/cancelled"                  [ALWAYS]    [ALWAYS]      CancelledParams                 Always      [];
        Progress                  "notifications/progress"                   [HANDSHAKE] [ALWAYS]      ProgressParams                  Always      [];
        LoggingMessage            "notifications/message"                    []          [ALWAYS]      LoggingMessageParams            Always      [];
        ToolsListChanged          "notifications/tools/list_changed"         []          [ALWAYS]      EmptyParams                     Initialized [];
        ResourcesListChanged      "notifications/resources/list_changed"     []          [ALWAYS]      EmptyParams                     Initialized [];
        ResourcesUpdated          "notifications/resources/updated"          []          [ALWAYS]      ResourceUpdatedParams           Initialized [];
        PromptsListChanged        "notifications/prompts/list_changed"       []          [ALWAYS]      EmptyParams                     Initialized [];
        RootsListChanged          "notifications/roots/list_changed"         [HANDSHAKE] []            EmptyParams                     Initialized [];
        ElicitationComplete       "notifications/elicitation/complete"       []          [V2025_11]    ElicitationCompleteParams       Initialized [];
        SubscriptionsAcknowledged "notifications/subscriptions/acknowledged" []          [ENVELOPE]    SubscriptionsAcknowledgedParams Initialized [];
        Tasks                     "notifications/tasks"                      []          [ENVELOPE]    DetailedTask                    Initialized [Extension];
        TasksStatus               "notifications/tasks/status"               [V2025_11]  [V2025_11]    Task                            Initialized [Extension];
    }
}

/// Request method as a type.
pub trait Request {
    /// Row of the method.
    const METHOD: Method;
    /// Parameters, without `_meta`.
    type Params: WireObject + serde::de::DeserializeOwned + Send + Sync + 'static;
    /// Result.
    type Result: ResultBody + serde::de::DeserializeOwned + 'static;
}

/// Notification method as a type.
pub trait Notification {
    /// Row of the method.
    const METHOD: Method;
    /// Parameters, without `_meta`.
    type Params: WireObject + serde::de::DeserializeOwned + Send + Sync + 'static;
}

/// Sender and receiver of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server.
    ClientToServer,
    /// From the server to the client.
    ServerToClient,
}

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Expects a response.
    Request,
    /// Expects no response.
    Notification,
}

/// When a message can be sent on a connection of the handshake era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Before initialization.
    Opening,
    /// At any time.
    Always,
    /// After initialization.
    Initialized,
}

/// Property of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Results are cacheable: they carry `ttlMs` and `cacheScope` (envelope era).
    Cacheable,
    /// The result can be an `InputRequiredResult` (envelope era).
    AsksForInput,
    /// Results are paginated.
    Paginated,
    /// The HTTP header `Mcp-Name` mirrors this member of the params (envelope era).
    Mirrors(&'static str),
    /// The request stays open for as long as the subscription that it opens.
    LongLived,
    /// The method belongs to an extension or an experiment, and exists where that is enabled.
    Extension,
}

/// Row of the method table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The method.
    pub method: Method,
    /// The protocol's name of the method.
    pub name: &'static str,
    /// Request or notification.
    pub kind: Kind,
    /// The revisions in which a client sends it.
    pub client: Option<Window>,
    /// The revisions in which a server sends it.
    pub server: Option<Window>,
    /// When the method can be sent.
    pub phase: Phase,
    /// Properties of the method.
    pub marks: &'static [Mark],
    /// Checks params against the type of the method.
    pub check: fn(&str) -> Result<(), serde_json::Error>,
}

impl Method {
    /// Returns the row of the method.
    pub const fn row(self) -> &'static Row {
        &METHODS[self as usize]
    }

    /// Returns the protocol's name of the method.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns whether the method is a request or a notification.
    pub const fn kind(self) -> Kind {
        self.row().kind
    }

    /// Returns when the method can be sent.
    pub const fn phase(self) -> Phase {
        self.row().phase
    }

    /// Returns the revisions in which the method is sent in this direction.
    pub const fn window(self, direction: Direction) -> Option<Window> {
        match direction {
            Direction::ClientToServer => self.row().client,
            Direction::ServerToClient => self.row().server,
        }
    }

    /// Whether the method exists in `version` in this direction. It need not be served.
    pub const fn exists(self, direction: Direction, version: ProtocolVersion) -> bool {
        match self.window(direction) {
            Some(window) => window.contains(version),
            None => false,
        }
    }

    /// Whether results carry `ttlMs` and `cacheScope`.
    pub fn is_cacheable(self) -> bool {
        self.has(Cacheable)
    }

    /// Whether the result can be an `InputRequiredResult`.
    pub fn asks_for_input(self) -> bool {
        self.has(AsksForInput)
    }

    /// Whether results are paginated.
    pub fn is_paginated(self) -> bool {
        self.has(Paginated)
    }

    /// Whether a request of this method stays open indefinitely.
    pub fn is_long_lived(self) -> bool {
        self.has(LongLived)
    }

    /// Whether the method is part of the core protocol, not of an extension or an experiment.
    pub fn is_core(self) -> bool {
        !self.has(Extension)
    }

    /// Returns the member of the params that the HTTP header `Mcp-Name` mirrors.
    pub fn mirrored_field(self) -> Option<&'static str> {
        self.row().marks.iter().find_map(|mark| if let Mirrors(field) = mark { Some(*field) } else { None })
    }

    /// Checks params against the type of the method. Absent params are an empty object.
    ///
    /// # Errors
    /// Fails if the params cannot be decoded.
    pub fn check(self, params: Option<&str>) -> Result<(), serde_json::Error> {
        (self.row().check)(params.unwrap_or("{}"))
    }

    fn has(self, mark: Mark) -> bool {
        self.row().marks.contains(&mark)
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

fn decodes<P: serde::de::DeserializeOwned>(params: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<P>(params).map(drop)
}

macro_rules! methods {
    (
        requests { $(
            $request:ident $rname:literal [$($rclient:ident)?] [$($rserver:ident)?]
            $rparams:ident => $result:ident $rphase:ident [$($rmark:expr),*];
        )* }
        notifications { $(
            $notification:ident $nname:literal [$($nclient:ident)?] [$($nserver:ident)?]
            $nparams:ident $nphase:ident [$($nmark:expr),*];
        )* }
    ) => {
        /// Method of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $(#[doc = concat!("`", $rname, "`.")] #[doc(alias = $rname)] $request,)*
            $(#[doc = concat!("`", $nname, "`.")] #[doc(alias = $nname)] $notification,)*
        }

        impl Method {
            /// Returns the method with this protocol name.
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($rname => Some(Self::$request),)*
                    $($nname => Some(Self::$notification),)*
                    _ => None,
                }
            }
        }

        /// All rows, in the order of [`Method`].
        // A constant would compile the checks of all params once more in every crate that names it.
        pub static METHODS: &[Row] = &[
            $(methods!(@row $request $rname Request [$($rclient)?] [$($rserver)?] $rparams $rphase [$($rmark),*]),)*
            $(methods!(@row $notification $nname Notification [$($nclient)?] [$($nserver)?] $nparams $nphase [$($nmark),*]),)*
        ];

        $(
            #[doc = concat!("The `", $rname, "` request.")]
            #[doc(alias = $rname)]
            #[derive(Clone, Copy, Debug)]
            pub struct $request;

            impl Request for $request {
                const METHOD: Method = Method::$request;
                type Params = $rparams;
                type Result = $result;
            }
        )*
        $(
            #[doc = concat!("The `", $nname, "` notification.")]
            #[doc(alias = $nname)]
            #[derive(Clone, Copy, Debug)]
            pub struct $notification;

            impl Notification for $notification {
                const METHOD: Method = Method::$notification;
                type Params = $nparams;
            }
        )*
    };

    (@row $method:ident $name:literal $kind:ident [$($client:ident)?] [$($server:ident)?] $params:ident $phase:ident [$($mark:expr),*]) => {
        Row {
            method: Method::$method,
            name: $name,
            kind: Kind::$kind,
            client: methods!(@window $($client)?),
            server: methods!(@window $($server)?),
            phase: Phase::$phase,
            marks: &[$($mark),*],
            check: decodes::<$params>,
        }
    };
    (@window) => { None };
    (@window $window:ident) => { Some($window) };
}
use methods;

#[cfg(test)]
mod tests;
