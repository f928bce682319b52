//! Log messages to the client (`notifications/message`), on behalf of a request or outside any.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Once};

use duplexer_types::json::Json;
use duplexer_types::logging::{LoggingLevel, LoggingMessageParams};
use duplexer_types::methods::{self, Notification};
use duplexer_types::version::Era;

use super::{Context, Scope, ask, meta_of};
use crate::kernel::connection::Connection;
use duplexer_core::dispatch::{Message, NotifyFuture};

impl<S> Context<S> {
    /// Logs to the client, without the name of a logger. Deprecated by the protocol as of 2026-07-28.
    ///
    /// In the handshake era the message is sent from the level that the client has set. In the envelope era it is sent
    /// only if this request asks for log messages, from the level it names.
    ///
    /// A server that does not declare [`logging`](crate::ServerBuilder::logging) sends no log messages in either era.
    pub fn log(&self, level: LoggingLevel, data: impl Into<Json>) -> NotifyFuture {
        self.sink().send(level, None, data)
    }

    /// Returns a logger with this name, for log messages on behalf of this request. See [`Context::log`] for what is
    /// sent.
    ///
    /// ```
    /// # async fn scan(cx: duplexer_server::Context) {
    /// cx.logger("scan").info("three pages").await;
    /// # }
    /// ```
    pub fn logger<'a>(&'a self, name: impl Into<Cow<'a, str>>) -> Logger<'a> {
        Logger { sink: self.sink(), name: name.into() }
    }

    /// Returns whether a notification may be sent: any but a log message below the level of the client.
    pub(super) fn passes_level<N: Notification>(&self, params: &N::Params) -> bool {
        level_of::<N>(params).is_none_or(|level| self.sink().is_enabled(level))
    }

    fn sink(&self) -> Sink<'_> {
        Sink::Request(&self.scope, self.message())
    }
}

/// Returns the level of a log message; `None` for any other notification.
fn level_of<N: Notification>(params: &N::Params) -> Option<LoggingLevel> {
    (params as &dyn Any).downcast_ref().map(|message: &LoggingMessageParams| message.level)
}

impl Connection {
    /// Logs outside a request, without the name of a logger. Reaches only clients of the handshake era, from the level
    /// they have set, and only if the server declares [`logging`](crate::ServerBuilder::logging).
    pub fn log(&self, level: LoggingLevel, data: impl Into<Json>) -> NotifyFuture {
        Sink::Connection(self).send(level, None, data)
    }

    /// Returns a logger with this name, for log messages outside a request. See [`Connection::log`] for what is sent.
    pub fn logger<'a>(&'a self, name: impl Into<Cow<'a, str>>) -> Logger<'a> {
        Logger { sink: Sink::Connection(self), name: name.into() }
    }

    /// Returns whether a notification may be sent: any but a log message below the level of the client.
    pub(super) fn passes_level<N: Notification>(&self, params: &N::Params) -> bool {
        level_of::<N>(params).is_none_or(|level| Sink::Connection(self).is_enabled(level))
    }
}

/// Sends log messages under one logger name. Returned by [`Context::logger`] and [`Connection::logger`].
///
/// ```
/// use duplexer::{Context, Server, Tool};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// async fn scan(cx: Context) -> &'static str {
///     let log = cx.logger("scan");
///     log.info("begun").await;
///     log.warning(json!({"skipped": 2})).await;
///     "done"
/// }
///
/// let server = Server::builder("archive", "1.0.0").logging().tool(Tool::new("scan", scan)).build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # assert_eq!(client.call_tool("scan", ()).text().await?, "done");
/// # Ok(())
/// # }
/// ```
pub struct Logger<'a> {
    sink: Sink<'a>,
    name: Cow<'a, str>,
}

#[derive(Clone, Copy)]
enum Sink<'a> {
    Request(&'a Arc<Scope>, &'a Message),
    Connection(&'a Connection),
}

macro_rules! levels {
    ($($(#[$doc:meta])* $name:ident => $level:ident),* $(,)?) => {
        $(
            $(#[$doc])*
            pub fn $name(&self, data: impl Into<Json>) -> NotifyFuture {
                self.log(LoggingLevel::$level, data)
            }
        )*
    };
}

impl Logger<'_> {
    /// Logs at this level.
    pub fn log(&self, level: LoggingLevel, data: impl Into<Json>) -> NotifyFuture {
        self.sink.send(level, Some(&self.name), data)
    }

    levels! {
        /// Logs at level `debug`.
        debug => Debug,
        /// Logs at level `info`.
        info => Info,
        /// Logs at level `notice`.
        notice => Notice,
        /// Logs at level `warning`.
        warning => Warning,
        /// Logs at level `error`.
        error => Error,
        /// Logs at level `critical`.
        critical => Critical,
        /// Logs at level `alert`.
        alert => Alert,
        /// Logs at level `emergency`.
        emergency => Emergency,
    }
}

impl Sink<'_> {
    fn send(self, level: LoggingLevel, logger: Option<&str>, data: impl Into<Json>) -> NotifyFuture {
        if !self.is_enabled(level) {
            return NotifyFuture::done();
        }
        let mut params = LoggingMessageParams::new(level, data);
        params.logger = logger.map(Into::into);
        match self {
            Self::Request(scope, _) => {
                ask::notify::<methods::LoggingMessage>(&*scope.call.channel, scope.version, &params)
            }
            Self::Connection(connection) => ask::notify::<methods::LoggingMessage>(
                &**connection.outbound(),
                connection.version(),
                &params,
            ),
        }
    }

    fn is_enabled(self, level: LoggingLevel) -> bool {
        let connection = match self {
            Self::Request(scope, _) => &*scope.connection,
            Self::Connection(connection) => connection,
        };
        if !connection.is_logging_declared() {
            warn_undeclared();
            return false;
        }
        match self {
            Self::Request(scope, message) => match scope.version.era() {
                Era::Handshake => level as u8 >= scope.connection.log_level(),
                Era::Envelope => {
                    scope.call.id.is_some() && requested_level(message).is_some_and(|from| level >= from)
                }
            },
            Self::Connection(connection) => {
                connection.era() == Era::Handshake && level as u8 >= connection.log_level()
            }
        }
    }
}

/// Warns once per process: P-LOG-1 allows log messages only to a server that declares the capability.
fn warn_undeclared() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!("log messages to clients are dropped: the server is built without `.logging()`");
    });
}

/// Returns the level that the request names in `_meta`. An unknown level requests no messages.
fn requested_level(message: &Message) -> Option<LoggingLevel> {
    meta_of(message).log_level.and_then(|level| serde_json::from_str(level).ok())
}

impl fmt::Debug for Logger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").field("name", &self.name).finish_non_exhaustive()
    }
}
