//! `duplexer prompt` and `duplexer complete`: fills prompts and suggests arguments.

use duplexer::types::completion::{
    CompleteParams, CompleteResult, CompletionArgument, CompletionContext, CompletionReference,
    PromptReference, ResourceTemplateReference,
};
use duplexer::types::json::JsonObject;
use duplexer::types::prompt::GetPromptResult;

use super::{Kind, unknown, unreadable};
use crate::arguments::{Argument, texts};
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::show;
use crate::text::{Text, lines};

/// A prompt and its arguments.
pub(super) struct Prompt {
    name: String,
    arguments: JsonObject<String>,
}

impl Prompt {
    pub(super) fn parse(words: &[String]) -> Result<Self, Failure> {
        let (name, rest) = words.split_first().ok_or_else(|| {
            Failure::usage("which prompt? Name it behind the server; `duplexer list` shows which there are")
        })?;
        Ok(Self { name: name.clone(), arguments: texts(rest)? })
    }

    pub(super) async fn run(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let raw = match session.ask(session.client.get_prompt(&self.name, self.arguments.clone())).await {
            Ok(raw) => raw,
            Err(error) => return Err(unknown(session, error, Kind::Prompts, &self.name).await),
        };
        if output.is_json() {
            return output.json(&raw);
        }
        output.text(&show::messages(&raw.decode::<GetPromptResult>().map_err(unreadable)?))
    }
}

/// An argument to complete.
pub(super) struct Complete {
    /// The prompt, or the template.
    of: String,
    name: String,
    typed: String,
    known: JsonObject<String>,
}

impl Complete {
    pub(super) fn parse(words: &[String]) -> Result<Self, Failure> {
        let [of, argument, known @ ..] = words else {
            return Err(Failure::usage(
                "what is to be completed? Name a prompt or a template behind the server, then NAME=BEGINNING",
            ));
        };
        let (name, typed) = Argument::parse(argument)?.into_text();
        Ok(Self { of: of.clone(), name, typed, known: texts(known)? })
    }

    /// Templates are URIs, and have a colon; names of prompts have none.
    fn is_template(&self) -> bool {
        self.of.contains(':')
    }

    pub(super) async fn run(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let (reference, kind) = if self.is_template() {
            (CompletionReference::Resource(ResourceTemplateReference::new(&self.of)), Kind::Templates)
        } else {
            (CompletionReference::Prompt(PromptReference::new(&self.of)), Kind::Prompts)
        };
        let mut params = CompleteParams::new(reference, CompletionArgument::new(&self.name, &self.typed));
        if !self.known.is_empty() {
            params = params.context(CompletionContext::new().arguments(self.known.clone()));
        }
        let raw = match session.ask(session.client.complete_with(params)).await {
            Ok(raw) => raw,
            Err(error) => return Err(unknown(session, error, kind, &self.of).await),
        };
        if output.is_json() {
            return output.json(&raw);
        }
        let result: CompleteResult = raw.decode().map_err(unreadable)?;
        if !result.completion.values.is_empty() {
            output.text(&lines(result.completion.values.iter().map(Text::plain)))?;
        }
        if result.completion.has_more == Some(true) {
            session.terminal.note("(there are more)");
        }
        Ok(())
    }
}
