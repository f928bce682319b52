//! The session of a command with its server.

mod diagnosis;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer::client::{
    Call, Client, ClientBuilder, ClientError, ConnectError, Negotiation, OpenError, OpenWith as _,
    PinnedVersion, ServerNotification, TaskOptions,
};
use duplexer::dispatch::{CallOptions, lock};
use duplexer::error::CallError;
use duplexer::transport::FrameDirection;
use duplexer::transport::child::Child;
use duplexer::types::json::Json;
use duplexer::types::logging::{LoggingLevel, LoggingMessageParams};
use duplexer::types::methods;
use duplexer::types::roots::ListRootsResult;
use duplexer::types::skill;
use duplexer::types::version::{Era, ProtocolVersion, Window};
use duplexer::types::wire::{result_type, result_type_of};
use duplexer_http_client::HttpTransport;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::arguments::{EraChoice, Request, SessionArguments};
use crate::failure::{Exit, Failure};
use crate::login;
use crate::questions::Questions;
use crate::roots::root;
use crate::sampling::Sampler;
use crate::show;
use crate::target::{Endpoint, Program, Target};
use crate::terminal::Terminal;
use crate::text::{Style, Text};

/// Time for the cancellation of a task after Ctrl-C.
const CANCEL_TIME: Duration = Duration::from_secs(2);
/// Maximum queued notifications.
const BACKLOG: usize = 1024;

/// An open session.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) terminal: Arc<Terminal>,
    /// Notifications of the server.
    pub(crate) notifications: mpsc::Receiver<ServerNotification>,
    child: Option<Child>,
    timeout: Option<Duration>,
    /// The task that the command waits for, and that Ctrl-C cancels.
    awaited: Mutex<Option<String>>,
}

impl Session {
    /// Opens a session with `target`.
    pub(crate) async fn open(
        target: &Target,
        request: &Request,
        terminal: &Arc<Terminal>,
    ) -> Result<Self, Failure> {
        let arguments = &request.session;
        let questions = Questions::new(request, Arc::clone(terminal));
        let (sender, notifications) = mpsc::channel(BACKLOG);
        let builder = client_builder(arguments, terminal, questions, sender);
        let builder = with_roots(builder, arguments)?;
        let builder = with_sampling(builder, arguments, terminal);
        let (client, child) = match target {
            Target::Url(endpoint) => {
                (Box::pin(over_http(endpoint, arguments, builder, terminal)).await?, None)
            }
            Target::Command(program) => {
                let (client, child) = with_program(program, arguments, builder).await?;
                (client, Some(child))
            }
        };
        let (terminal, timeout) = (Arc::clone(terminal), arguments.timeout);
        let session = Self { client, terminal, notifications, child, timeout, awaited: Mutex::default() };
        session.set_log_level(arguments.log).await?;
        Ok(session)
    }

    /// Sends a request and shows its progress. Returns the result unchanged, if it is of the method's own type.
    pub(crate) async fn ask<M: methods::Request + 'static>(
        &self,
        call: Call<M>,
    ) -> Result<Json, ClientError> {
        let terminal = Arc::clone(&self.terminal);
        let mut options = CallOptions::new().on_progress(move |report| terminal.progress(&report));
        options.timeout = self.timeout;
        let answer = call.options(options).raw().await;
        self.terminal.clear();
        let result = answer?;
        if self.client.era() == Era::Handshake {
            return Ok(result);
        }
        let result_type = result_type_of(result.as_str()).map_err(CallError::Unexpected)?.into_owned();
        if result_type == result_type::COMPLETE {
            return Ok(result);
        }
        Err(ClientError::ResultType { method: M::METHOD, result_type, result })
    }

    /// Waits for the end of a task that this command has started. Returns its result unchanged.
    pub(crate) async fn wait_for_task(&self, id: &str) -> Result<Json, ClientError> {
        *lock(&self.awaited) = Some(id.to_owned());
        let ended = self.client.task(id).raw_result().await;
        *lock(&self.awaited) = None;
        self.terminal.clear();
        ended
    }

    /// Cancels the task that the command waits for.
    pub(crate) async fn cancel_awaited_task(&self) {
        let awaited = lock(&self.awaited).take();
        if let Some(id) = awaited {
            // The command ends either way.
            let _ = timeout(CANCEL_TIME, self.client.task(id).cancel()).await;
        }
    }

    /// Sets the log level. In the handshake era this is a separate request, which not every server supports.
    async fn set_log_level(&self, level: Option<LoggingLevel>) -> Result<(), Failure> {
        let has_levels = self.client.server_capabilities().logging.is_some();
        if let Some(level) = level.filter(|_| has_levels && self.client.era() == Era::Handshake) {
            self.ask(self.client.set_log_level(level)).await?;
        }
        Ok(())
    }

    /// Returns the id of the program, which is also that of its group.
    pub(crate) fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Ends the session, and the program if there is one.
    pub(crate) async fn close(self) {
        self.terminal.clear();
        // The result has arrived; an error while closing does not change it.
        let _ = self.client.close().await;
        if let Some(child) = self.child {
            let _ = child.shutdown().await;
        }
    }
}

fn client_builder(
    arguments: &SessionArguments,
    terminal: &Arc<Terminal>,
    questions: Questions,
    sender: mpsc::Sender<ServerNotification>,
) -> ClientBuilder {
    let negotiation = match arguments.era {
        EraChoice::Auto => Negotiation::Auto,
        EraChoice::Handshake => Negotiation::Handshake,
        EraChoice::Envelope => {
            Negotiation::Pinned(PinnedVersion::new(ProtocolVersion::LATEST_ENVELOPE.as_str()))
        }
    };
    let questions = Arc::new(questions);
    let (log, status) = (Arc::clone(terminal), Arc::clone(terminal));
    let tasks = TaskOptions::new().on_status(move |task| status.task(task));
    let mut builder = Client::builder("duplexer-cli", env!("CARGO_PKG_VERSION"))
        .extension_in(skill::EXTENSION, Json::object(), Window::ALWAYS)
        .negotiation(negotiation)
        .log_level(arguments.log.unwrap_or(LoggingLevel::Info))
        .tasks(tasks)
        .on_elicitation(move |asked| {
            let questions = Arc::clone(&questions);
            async move { Ok(questions.answer(asked).await) }
        })
        .on_log(move |message| log.show(&logged(&message)))
        // A full queue drops the notification; the next change is shown.
        .on_notification(move |notification| drop(sender.try_send(notification)));
    if arguments.trace {
        let trace = Arc::clone(terminal);
        builder = builder.on_frame(move |direction, frame| trace.show(&traced(direction, frame)));
    }
    if let Some(limit) = arguments.timeout {
        builder = builder.timeout(limit).handshake_timeout(limit);
    }
    builder
}

/// Declares the folders of `--root`.
fn with_roots(builder: ClientBuilder, arguments: &SessionArguments) -> Result<ClientBuilder, Failure> {
    if arguments.roots.is_empty() {
        return Ok(builder);
    }
    let roots = arguments.roots.iter().map(|folder| root(folder)).collect::<Result<Vec<_>, _>>()?;
    Ok(builder.on_roots(move || {
        let roots = ListRootsResult::new(roots.clone());
        async move { Ok(roots) }
    }))
}

/// Answers requests for a model by the command of `--sample`.
fn with_sampling(
    builder: ClientBuilder,
    arguments: &SessionArguments,
    terminal: &Arc<Terminal>,
) -> ClientBuilder {
    let Some(command) = &arguments.sample else { return builder };
    let sampler = Arc::new(Sampler::new(command.clone(), Arc::clone(terminal)));
    builder.on_sampling(move |asked| {
        let sampler = Arc::clone(&sampler);
        async move { sampler.answer(asked).await }
    })
}

fn logged(message: &LoggingMessageParams) -> Text {
    let text = message.data.decode::<String>().unwrap_or_else(|_| message.data.as_str().to_owned());
    let level = Text::new().then(Style::Faint, format!("[{}]", message.level.as_str()));
    match &message.logger {
        Some(logger) => level.then(Style::Plain, format!(" {logger}: {text}")),
        None => level.then(Style::Plain, format!(" {text}")),
    }
}

pub(crate) async fn over_http(
    endpoint: &Endpoint,
    arguments: &SessionArguments,
    builder: ClientBuilder,
    terminal: &Arc<Terminal>,
) -> Result<Client, Failure> {
    let url = endpoint.url.as_str();
    // An option counts more than the configuration.
    let headers = endpoint.headers.iter().chain(&arguments.headers);
    let mut transport =
        headers.fold(HttpTransport::builder(url), |transport, (name, value)| transport.header(name, value));
    let given = arguments.token_option().or_else(|| endpoint.has_token().then_some("the configuration"));
    if let Some(token) = &arguments.login.token {
        transport = transport.bearer(token);
    } else if given.is_none()
        && let Some(oauth) = login::authorization(url, &arguments.login, terminal).await?
    {
        transport = transport.authorization(Arc::new(oauth));
    }
    let transport = transport.build().map_err(|error| Failure::usage(error.to_string()))?;
    match Box::pin(builder.open(transport)).await {
        Ok(client) => Ok(client),
        Err(OpenError::Connect(error)) => {
            Err(diagnosis::of_http(url, given, &error).unwrap_or_else(|| refused(error, arguments.era)))
        }
        Err(error) => Err(Failure::usage(error.to_string())),
    }
}

pub(crate) async fn with_program(
    program: &Program,
    arguments: &SessionArguments,
    builder: ClientBuilder,
) -> Result<(Client, Child), Failure> {
    if !arguments.headers.is_empty() {
        return Err(Failure::usage("--header is for servers at a URL; a program gets --env"));
    }
    let name = program.name()?;
    let started = program.start(&arguments.env)?;
    let (transport, child) = started.spawn().map_err(|error| {
        Failure::new(Exit::Connect, error.to_string()).hint("is it installed, and its name or path right?")
    })?;
    let failure = match builder.connect(transport).await {
        Ok(client) => return Ok((client, child)),
        Err(error) => refused(error, arguments.era),
    };
    Err(diagnosis::of_program(&name, child, failure).await)
}

/// Formats a message on the wire.
fn traced(direction: FrameDirection, frame: &str) -> Text {
    let (style, arrow) = match direction {
        FrameDirection::Out => (Style::Sent, "-->"),
        FrameDirection::In => (Style::Received, "<--"),
    };
    let mut line = Text::new().then(style, arrow).then(Style::Plain, " ");
    line.append(&show::verbatim(frame));
    line
}

/// Converts the error of opening a session, with a hint about the era.
fn refused(error: ConnectError, era: EraChoice) -> Failure {
    let failure = Failure::from(error);
    match (failure.exit, era) {
        (Exit::Protocol, EraChoice::Handshake | EraChoice::Envelope) => {
            failure.hint("the server may not speak this era: try --era auto")
        }
        _ => failure,
    }
}
