//! The current process of a restarting command, and what must be known to replace it.

use std::collections::{HashSet, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use duplexer_core::transport::child::{Child, ChildCommand};
use duplexer_core::transport::{
    FrameReader, FrameWriter, Frames, Incoming, Transport as _, TransportError, TransportFailure,
};
use duplexer_types::json::find_members;
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::methods::Method;
use tokio::time::{Instant, Sleep, sleep};

use super::RestartPolicy;

/// Run time after which earlier restarts no longer count.
const STABLE: Duration = Duration::from_secs(60);

pub(super) struct Link {
    policy: RestartPolicy,
    command: Box<dyn Fn() -> ChildCommand + Send + Sync>,
    state: State,
    restarts: u32,
    session: Session,
    /// Requests that the current process has not answered.
    in_flight: HashSet<RequestId>,
    failures: VecDeque<Incoming>,
    /// The first frame of the caller was being written to a process that has ended.
    discard_front: bool,
    wakers: Wakers,
}

enum State {
    Running(Box<Running>),
    Waiting(Pin<Box<Sleep>>),
    Closed,
}

/// A process and its streams. Dropping it kills the process.
struct Running {
    reader: Box<dyn FrameReader>,
    writer: Box<dyn FrameWriter>,
    child: Child,
    started: Instant,
    /// Copy of the first frame of the caller, while it is written.
    staged: Frames,
}

/// What the current process knows of the session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Session {
    /// The era has no sessions, or none is open yet.
    NotNeeded,
    /// A handshake was sent to this process.
    Open,
    /// A handshake was sent to an earlier process.
    Lost,
}

#[derive(Default)]
struct Wakers {
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Running {
    fn start(command: ChildCommand) -> Result<Box<Self>, TransportError> {
        let (transport, child) = command.spawn()?;
        let (reader, writer) = transport.split();
        Ok(Box::new(Self { reader, writer, child, started: Instant::now(), staged: Frames::default() }))
    }
}

impl Link {
    pub(super) fn start(
        policy: RestartPolicy,
        command: Box<dyn Fn() -> ChildCommand + Send + Sync>,
    ) -> Result<Self, TransportError> {
        let state = State::Running(Running::start(command())?);
        Ok(Self {
            policy,
            command,
            state,
            restarts: 0,
            session: Session::NotNeeded,
            in_flight: HashSet::new(),
            failures: VecDeque::new(),
            discard_front: false,
            wakers: Wakers::default(),
        })
    }

    /// Ends the link. Returns the process, if one runs.
    pub(super) fn close(&mut self) -> Option<Child> {
        let state = std::mem::replace(&mut self.state, State::Closed);
        self.wake();
        match state {
            State::Running(running) => Some(running.child),
            State::Waiting(_) | State::Closed => None,
        }
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Incoming>> {
        loop {
            if let Some(failure) = self.failures.pop_front() {
                return Poll::Ready(Some(failure));
            }
            match &mut self.state {
                State::Closed => return Poll::Ready(None),
                State::Running(running) => match running.reader.poll_next(cx) {
                    Poll::Ready(Some(Ok(incoming))) => {
                        self.note_response(&incoming);
                        return Poll::Ready(Some(incoming));
                    }
                    Poll::Ready(None | Some(Err(_))) => self.lose(),
                    Poll::Pending => {
                        self.wakers.reader = Some(cx.waker().clone());
                        return Poll::Pending;
                    }
                },
                State::Waiting(delay) => match delay.as_mut().poll(cx) {
                    Poll::Ready(()) => self.restart(),
                    Poll::Pending => {
                        self.wakers.reader = Some(cx.waker().clone());
                        return Poll::Pending;
                    }
                },
            }
        }
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        frames: &mut Frames,
    ) -> Poll<Result<(), TransportError>> {
        loop {
            if std::mem::take(&mut self.discard_front) {
                frames.pop();
            }
            let State::Running(running) = &mut self.state else {
                if matches!(self.state, State::Closed) {
                    return Poll::Ready(Err(TransportError::Closed));
                }
                self.wakers.writer = Some(cx.waker().clone());
                return Poll::Pending;
            };
            if running.staged.is_empty() {
                let Some(frame) =
                    frames.bytes().split(|byte| *byte == b'\n').next().filter(|_| !frames.is_empty())
                else {
                    return Poll::Ready(Ok(()));
                };
                if !admit(frame, &mut self.session, &mut self.in_flight, &mut self.failures) {
                    frames.pop();
                    self.wake();
                    continue;
                }
                running.staged.push(frame, None);
            }
            match running.writer.poll_write(cx, &mut running.staged) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => drop(frames.pop()),
                Poll::Ready(Err(_)) => {
                    self.lose();
                    self.wake();
                }
            }
        }
    }

    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        // A process that ends from here on is not started again.
        self.restarts = self.policy.restarts;
        match &mut self.state {
            State::Running(running) => running.writer.poll_close(cx),
            State::Waiting(_) | State::Closed => Poll::Ready(Ok(())),
        }
    }

    fn note_response(&mut self, incoming: &Incoming) {
        if let Incoming::Message(message) = incoming
            && let (Some(id), None) = id_and_method(&message.text)
        {
            self.in_flight.remove(&id);
        }
    }

    /// Gives up the process. Its requests may have run, so they fail and are not sent again.
    fn lose(&mut self) {
        if let State::Running(running) = &self.state {
            self.discard_front = !running.staged.is_empty();
            if running.started.elapsed() >= STABLE {
                self.restarts = 0;
            }
        }
        let interrupted = || TransportFailure::Interrupted("the server process has ended".into());
        self.failures.extend(self.in_flight.drain().map(|id| Incoming::Failed(id, interrupted())));
        if self.session == Session::Open {
            self.session = Session::Lost;
        }
        self.wait_or_close();
    }

    fn wait_or_close(&mut self) {
        self.state = match self.policy.delay_before(self.restarts) {
            Some(delay) => {
                tracing::warn!(
                    restart = self.restarts + 1,
                    ?delay,
                    "a server process has ended and is started again"
                );
                self.restarts += 1;
                State::Waiting(Box::pin(sleep(delay)))
            }
            None => State::Closed,
        };
    }

    fn restart(&mut self) {
        match Running::start((self.command)()) {
            Ok(running) => self.state = State::Running(running),
            Err(error) => {
                tracing::warn!(%error, "a server process could not be started again");
                self.wait_or_close();
            }
        }
        self.wake();
    }

    fn wake(&mut self) {
        for waker in [self.wakers.reader.take(), self.wakers.writer.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}

/// Returns whether a frame is sent to the process. One that needs a session that the process does not know is refused.
fn admit(
    frame: &[u8],
    session: &mut Session,
    in_flight: &mut HashSet<RequestId>,
    failures: &mut VecDeque<Incoming>,
) -> bool {
    let Ok(text) = std::str::from_utf8(frame) else { return true };
    let (id, method) = id_and_method(text);
    let Some(method) = method else { return *session != Session::Lost };
    if id.is_some() && Method::parse(&method) == Some(Method::Initialize) {
        *session = Session::Open;
    }
    match (id, *session) {
        (Some(id), Session::Lost) => failures.push_back(Incoming::Failed(id, TransportFailure::SessionEnded)),
        (None, Session::Lost) => {}
        (id, _) => {
            in_flight.extend(id);
            return true;
        }
    }
    false
}

fn id_and_method(text: &str) -> (Option<RequestId>, Option<String>) {
    let Ok([id, method]) = find_members(text, ["id", "method"]) else { return (None, None) };
    let id = id.one().and_then(|id| serde_json::from_str(id).ok());
    (id, method.one().and_then(|method| serde_json::from_str(method).ok()))
}
