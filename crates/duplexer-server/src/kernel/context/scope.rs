//! What all contexts of one message share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use duplexer_types::jsonrpc::RequestId;
use duplexer_types::methods::{METHODS, Method};
use duplexer_types::version::ProtocolVersion;

use super::progress::LastProgress;
use crate::features::input_rounds::InputRounds;
use crate::features::tasks::TaskCall;
use crate::kernel::connection::Connection;
use crate::kernel::observer::TargetCell;
use crate::kernel::principal::Principal;
use crate::registry::RunningServer;
use duplexer_core::dispatch::{CallContext, Message};

/// The part that all contexts of one message share.
pub(crate) struct Scope {
    pub(crate) call: CallContext,
    /// The message as it arrived.
    pub(crate) message: Arc<Message>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) running: RunningServer,
    pub(super) principal: Option<Arc<Principal>>,
    /// Read before any handler runs: a handshake does not change the revision of its own response.
    pub(crate) version: ProtocolVersion,
    /// The method that is handled. It changes when middleware rewrites the message.
    pub(crate) method: MethodCell,
    /// Number of handlers of this server that this call is nested in.
    pub(super) depth: u8,
    /// Set when the future of a blocking function is dropped while the function runs.
    pub(super) abandoned: AtomicBool,
    pub(super) progress_token: OnceLock<Option<RequestId>>,
    pub(super) last_progress: LastProgress,
    pub(crate) input_rounds: InputRounds,
    /// The task that this call is, or can become.
    task: Option<Arc<TaskCall>>,
    /// The tool that is called.
    pub(crate) target: TargetCell,
    /// Set when the handler sends the client a request: its result can then depend on the answer.
    asked: AtomicBool,
}

impl Scope {
    pub(crate) fn new(
        call: CallContext,
        connection: Arc<Connection>,
        running: RunningServer,
        principal: Option<Arc<Principal>>,
        message: Arc<Message>,
    ) -> Self {
        let version = connection.version();
        let method = MethodCell::new(message.known());
        Self {
            call,
            message,
            connection,
            running,
            principal,
            version,
            method,
            depth: 0,
            abandoned: AtomicBool::new(false),
            progress_token: OnceLock::new(),
            last_progress: LastProgress::none(),
            input_rounds: InputRounds::default(),
            task: None,
            target: TargetCell::new(),
            asked: AtomicBool::new(false),
        }
    }

    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.principal.as_deref()
    }

    /// Notes that the client is asked on behalf of this call.
    pub(crate) fn note_question(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Returns whether the client was asked on behalf of this call.
    pub(crate) fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Returns the scope of a call that is a task, or can become one.
    pub(crate) fn with_task(self, task: Arc<TaskCall>) -> Self {
        Self { task: Some(task), ..self }
    }

    pub(crate) fn task(&self) -> Option<&Arc<TaskCall>> {
        self.task.as_ref()
    }
}

/// A method that is read and replaced without a lock.
pub(crate) struct MethodCell(AtomicUsize);

impl MethodCell {
    fn new(method: Option<Method>) -> Self {
        Self(AtomicUsize::new(Self::row(method)))
    }

    pub(crate) fn get(&self) -> Option<Method> {
        METHODS.get(self.0.load(Ordering::Relaxed)).map(|row| row.method)
    }

    pub(crate) fn set(&self, method: Option<Method>) {
        self.0.store(Self::row(method), Ordering::Relaxed);
    }

    /// Returns the number of the row; for a custom method one that no row has.
    fn row(method: Option<Method>) -> usize {
        method.map_or(usize::MAX, |method| method as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_returns_the_method_that_was_set() {
        let cell = MethodCell::new(None);
        assert_eq!(cell.get(), None);
        for row in METHODS {
            cell.set(Some(row.method));
            assert_eq!(cell.get(), Some(row.method));
        }
        cell.set(None);
        assert_eq!(cell.get(), None);
    }
}
