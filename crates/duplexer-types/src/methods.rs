//! THE TABLE: every request and notification of every revision.
//!
//! Whoever asks "does this method exist here" reads it; nothing else knows. A row says who sends a method in
//! which revisions, what its params and its result are, and what else is special about it. Methods that are
//! known but not served of themselves (the tasks of 2025-11-25, the tasks extension) are in it too.

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
use crate::subscription::{
    SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult,
};
use crate::task::{CancelTaskParams, DetailedTask, GetTaskParams, GetTaskResult, UpdateTaskParams};
use crate::tool::{CallToolParams, CallToolResult, ListToolsResult};
use crate::version::{ProtocolVersion, Window};
use crate::wire::{ResultBody, WireObject};

use Mark::{AsksForInput, Cacheable, Extension, LongLived, Mirrors, Paginated, Unserved};

const ALWAYS: Window = Window::ALWAYS;
const HANDSHAKE: Window = Window::HANDSHAKE;
const ENVELOPE: Window = Window::ENVELOPE;
const ELICITATION: Window = Window::between(ProtocolVersion::V2025_06_18, ProtocolVersion::LATEST_HANDSHAKE);
const V2025_11: Window = Window::between(ProtocolVersion::V2025_11_25, ProtocolVersion::V2025_11_25);
const SINCE_2025_11: Window = Window::since(ProtocolVersion::V2025_11_25);

methods! {
    requests {
        // name                 on the wire                 client sends     server sends   params => result                                            phase        marks
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
    }
    notifications {
        Initialized               "notifications/initialized"                [HANDSHAKE] []            EmptyParams                     Opening     [];
        Cancelled                 "notifications/cancelled"                  [ALWAYS]    [ALWAYS]      CancelledParams                 Always      [];
        Progress                  "notifications/progress"                   [HANDSHAKE] [ALWAYS]      ProgressParams                  Always      [];
        Message                   "notifications/message"                    []          [ALWAYS]      LoggingMessageParams            Always      [];
        ToolsListChanged          "notifications/tools/list_changed"         []          [ALWAYS]      EmptyParams                     Initialized [];
        ResourcesListChanged      "notifications/resources/list_changed"     []          [ALWAYS]      EmptyParams                     Initialized [];
        ResourcesUpdated          "notifications/resources/updated"          []          [ALWAYS]      ResourceUpdatedParams           Initialized [];
        PromptsListChanged        "notifications/prompts/list_changed"       []          [ALWAYS]      EmptyParams                     Initialized [];
        RootsListChanged          "notifications/roots/list_changed"         [HANDSHAKE] []            EmptyParams                     Initialized [];
        ElicitationComplete       "notifications/elicitation/complete"       []          [V2025_11]    ElicitationCompleteParams       Initialized [];
        SubscriptionsAcknowledged "notifications/subscriptions/acknowledged" []          [ENVELOPE]    SubscriptionsAcknowledgedParams Initialized [];
        Tasks                     "notifications/tasks"                      []          [ENVELOPE]    DetailedTask                    Initialized [Extension];
    }
    // No types of their own: whoever sends them learns that there is no such method.
    unserved {
        TasksResult "tasks/result"               Request      [V2025_11] [V2025_11] GetTaskParams;
        TasksList   "tasks/list"                 Request      [V2025_11] [V2025_11] PaginatedParams;
        TasksStatus "notifications/tasks/status" Notification [V2025_11] [V2025_11] EmptyParams;
    }
}

/// A request, as a type.
pub trait Request {
    /// Its row.
    const METHOD: Method;
    /// What it carries, without `_meta`.
    type Params: WireObject + serde::de::DeserializeOwned + Send + Sync + 'static;
    /// What it is answered with.
    type Result: ResultBody + serde::de::DeserializeOwned;
}

/// A notification, as a type.
pub trait Notification {
    /// Its row.
    const METHOD: Method;
    /// What it carries, without `_meta`.
    type Params: WireObject + serde::de::DeserializeOwned + Send + Sync + 'static;
}

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The client.
    ClientToServer,
    /// The server.
    ServerToClient,
}

/// Whether a message is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It is.
    Request,
    /// It is not.
    Notification,
}

/// When a message may be sent on a connection of the handshake era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It opens the connection.
    Opening,
    /// At any time.
    Always,
    /// Once the connection is open.
    Initialized,
}

/// What is special about a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Its results say how long they stay fresh (envelope era).
    Cacheable,
    /// It may be answered with a request for input (envelope era).
    AsksForInput,
    /// It is answered in pages.
    Paginated,
    /// This member of its params is repeated in the HTTP header `Mcp-Name` (envelope era).
    Mirrors(&'static str),
    /// It is answered when the subscription it opens ends, which may be never.
    LongLived,
    /// It belongs to an extension, and exists where that is switched on.
    Extension,
    /// It is known and never served.
    Unserved,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row {
    /// Which method it is about.
    pub method: Method,
    /// The method on the wire.
    pub name: &'static str,
    /// Whether it is answered.
    pub kind: Kind,
    /// The revisions in which a client sends it.
    pub client: Option<Window>,
    /// The revisions in which a server sends it.
    pub server: Option<Window>,
    /// When it may be sent.
    pub phase: Phase,
    /// What is special about it.
    pub marks: &'static [Mark],
    /// Refuses params that are not what the method takes.
    pub check: fn(&str) -> Result<(), serde_json::Error>,
}

impl Method {
    /// The method's row.
    pub const fn row(self) -> &'static Row {
        &METHODS[self as usize]
    }

    /// The method on the wire.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it is answered.
    pub const fn kind(self) -> Kind {
        self.row().kind
    }

    /// When it may be sent.
    pub const fn phase(self) -> Phase {
        self.row().phase
    }

    /// The revisions in which it is sent in this direction.
    pub const fn window(self, direction: Direction) -> Option<Window> {
        match direction {
            Direction::ClientToServer => self.row().client,
            Direction::ServerToClient => self.row().server,
        }
    }

    /// Whether `version` has it in this direction. (It may still be one that is not served.)
    pub const fn exists(self, direction: Direction, version: ProtocolVersion) -> bool {
        match self.window(direction) {
            Some(window) => window.contains(version),
            None => false,
        }
    }

    /// Whether its results say how long they stay fresh.
    pub fn is_cacheable(self) -> bool {
        self.has(Cacheable)
    }

    /// Whether it may be answered with a request for input.
    pub fn asks_for_input(self) -> bool {
        self.has(AsksForInput)
    }

    /// Whether it is answered in pages.
    pub fn is_paginated(self) -> bool {
        self.has(Paginated)
    }

    /// Whether it stands for as long as the peer likes.
    pub fn is_long_lived(self) -> bool {
        self.has(LongLived)
    }

    /// Whether it is part of the protocol proper: neither of an extension nor of what is never served.
    pub fn is_core(self) -> bool {
        !self.has(Extension) && !self.has(Unserved)
    }

    /// The member of its params that HTTP repeats in `Mcp-Name`.
    pub fn mirrored_field(self) -> Option<&'static str> {
        self.row().marks.iter().find_map(|mark| if let Mirrors(field) = mark { Some(*field) } else { None })
    }

    /// Refuses params that are not what the method takes; without params they are `{}`.
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
        unserved { $(
            $unserved:ident $uname:literal $ukind:ident [$($uclient:ident)?] [$($userver:ident)?] $uparams:ident;
        )* }
    ) => {
        /// A method of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $(#[doc = concat!("`", $rname, "`.")] $request,)*
            $(#[doc = concat!("`", $nname, "`.")] $notification,)*
            $(#[doc = concat!("`", $uname, "`.")] $unserved,)*
        }

        impl Method {
            /// The method with this name on the wire.
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($rname => Some(Self::$request),)*
                    $($nname => Some(Self::$notification),)*
                    $($uname => Some(Self::$unserved),)*
                    _ => None,
                }
            }
        }

        /// All rows, in the order of [`Method`].
        pub const METHODS: &[Row] = &[
            $(methods!(@row $request $rname Request [$($rclient)?] [$($rserver)?] $rparams $rphase [$($rmark),*]),)*
            $(methods!(@row $notification $nname Notification [$($nclient)?] [$($nserver)?] $nparams $nphase [$($nmark),*]),)*
            $(methods!(@row $unserved $uname $ukind [$($uclient)?] [$($userver)?] $uparams Initialized [Unserved]),)*
        ];

        $(
            #[doc = concat!("The request `", $rname, "`.")]
            #[derive(Clone, Copy, Debug)]
            pub struct $request;

            impl Request for $request {
                const METHOD: Method = Method::$request;
                type Params = $rparams;
                type Result = $result;
            }
        )*
        $(
            #[doc = concat!("The notification `", $nname, "`.")]
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
