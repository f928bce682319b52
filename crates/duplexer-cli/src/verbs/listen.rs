//! `duplexer listen`: change notifications of a server.

use duplexer::client::{Change, ServerNotification};
use duplexer::types::json::JsonObject;
use duplexer::types::subscription::SubscriptionFilter;
use duplexer::types::version::Era;

use super::{Kind, unknown};
use crate::failure::{Exit, Failure, chain};
use crate::output::Output;
use crate::session::Session;
use crate::show;
use crate::terminal::print;
use crate::text::{Style, Text};

/// Changes of lists, and of these resources.
pub(super) struct Listen(Vec<String>);

impl Listen {
    pub(super) fn parse(words: &[String]) -> Self {
        Self(words.to_vec())
    }

    pub(super) async fn run(&self, session: &mut Session, output: &Output) -> Result<(), Failure> {
        match session.client.era() {
            Era::Envelope => self.on_a_stream(session, output).await,
            Era::Handshake => self.on_the_connection(session, output).await,
        }
    }

    async fn on_a_stream(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let mut filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .prompts_list_changed(true)
            .resources_list_changed(true);
        if !self.0.is_empty() {
            filter = filter.resource_subscriptions(self.0.clone());
        }
        let mut changes = session.client.listen(filter).await?;
        session
            .terminal
            .note(&format!("listening to {}; Ctrl-C ends it", acknowledged(changes.acknowledged())));
        while let Some(change) = changes.next().await {
            let change = change.map_err(|lost| Failure::new(Exit::Connect, chain(&lost)))?;
            report(&change, output);
        }
        session.terminal.note("the server has ended the stream");
        Ok(())
    }

    async fn on_the_connection(&self, session: &mut Session, output: &Output) -> Result<(), Failure> {
        for uri in &self.0 {
            if let Err(error) = session.ask(session.client.subscribe(uri.as_str())).await {
                return Err(unknown(session, error, Kind::Resources, uri).await);
            }
        }
        let all = SubscriptionFilter::new()
            .tools_list_changed(true)
            .prompts_list_changed(true)
            .resources_list_changed(true)
            .resource_subscriptions(self.0.clone());
        session.terminal.note(&format!("listening to {}; Ctrl-C ends it", acknowledged(&all)));
        loop {
            let notification = tokio::select! {
                notification = session.notifications.recv() => notification,
                () = session.client.closed() => None,
            };
            match notification {
                Some(notification) => change(notification).iter().for_each(|change| report(change, output)),
                None => return Err(Failure::new(Exit::Connect, "the server has gone away")),
            }
        }
    }
}

/// Describes the notifications that the server has acknowledged.
fn acknowledged(filter: &SubscriptionFilter) -> String {
    let lists = [
        (filter.tools_list_changed, "tools"),
        (filter.prompts_list_changed, "prompts"),
        (filter.resources_list_changed, "resources"),
    ];
    let mut all: Vec<&str> =
        lists.iter().filter(|(sent, _)| *sent == Some(true)).map(|(_, name)| *name).collect();
    all.extend(filter.resource_subscriptions.iter().flatten().map(String::as_str));
    if all.is_empty() { "nothing, as the server has it".to_owned() } else { all.join(", ") }
}

/// Returns the change of a notification, if it reports one.
fn change(notification: ServerNotification) -> Option<Change> {
    match notification {
        ServerNotification::ToolsListChanged => Some(Change::Tools),
        ServerNotification::PromptsListChanged => Some(Change::Prompts),
        ServerNotification::ResourcesListChanged => Some(Change::Resources),
        ServerNotification::ResourceUpdated(params) => Some(Change::Resource(params.uri)),
        _ => None,
    }
}

fn report(change: &Change, output: &Output) {
    let (what, uri) = match change {
        Change::Tools => ("tools", None),
        Change::Prompts => ("prompts", None),
        Change::Resources => ("resources", None),
        Change::Resource(uri) => ("resource", Some(uri)),
        _ => ("something", None),
    };
    if output.is_json() {
        let mut line = JsonObject::<duplexer::Json>::new().with("changed", what);
        if let Some(uri) = uri {
            line = line.with("uri", uri.as_str());
        }
        print(&show::verbatim(duplexer::Json::from(line).as_str()));
    } else {
        let what = uri.map_or(what, String::as_str);
        print(&Text::new().then(Style::Name, what).then(Style::Plain, " changed"));
    }
}
