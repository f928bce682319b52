//! Builds the requests of a scenario and checks the responses.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::scenario::{Ask, Scenario};
use crate::message::{Era, Request};
use crate::text;

/// Template of the requests of a scenario, which differ in id and text.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    ask: Ask,
    era: Era,
    params: String,
    /// Echoed text after the id.
    text: String,
}

/// Progress of a request.
#[derive(Debug, Default)]
pub(super) struct Flight {
    steps: u64,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    params: Option<Progress>,
    #[serde(borrow)]
    result: Option<Outcome<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    progress_token: Option<u64>,
    progress: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    #[serde(borrow, default)]
    content: Vec<Text<'a>>,
    #[serde(borrow, default)]
    contents: Vec<Text<'a>>,
    structured_content: Option<Sum>,
    #[serde(borrow, default)]
    tools: Vec<Tool<'a>>,
    is_error: Option<bool>,
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Sum {
    sum: f64,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// Kind of a received message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A progress step of the request with this id.
    Step(u64),
    /// The correct response to the request with this id.
    Answer(u64),
    /// A message without a request.
    Aside,
}

/// Number of filler tools in the list.
const DUMMIES: usize = 50;

impl Plan {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let (params, text) = match scenario.ask {
            Ask::Echo(length) => (String::new(), text::of(length.saturating_sub(ID))),
            Ask::Add | Ask::List => (String::new(), String::new()),
            Ask::Read(size) => (format!(r#""uri":"bench://blob/{size}""#), String::new()),
            Ask::Progress(n) => (format!(r#""name":"progress","arguments":{{"n":{n}}}"#), String::new()),
        };
        Self { ask: scenario.ask, era: scenario.era, params, text }
    }

    /// Divisor of the cost of a request.
    pub(super) fn units(&self) -> u64 {
        if let Ask::Progress(n) = self.ask { n } else { 1 }
    }

    /// Appends the request with this id.
    pub(super) fn write(&self, id: u64, out: &mut Vec<u8>) {
        let own;
        let params = match self.ask {
            Ask::Echo(_) => {
                let text = text::json(&format!("{id:016x}{}", self.text));
                own = format!(r#""name":"echo","arguments":{{"text":{text}}}"#);
                &own
            }
            Ask::Add => {
                own = format!(r#""name":"add","arguments":{{"a":{id},"b":0.5}}"#);
                &own
            }
            Ask::List | Ask::Read(_) | Ask::Progress(_) => &self.params,
        };
        let token = matches!(self.ask, Ask::Progress(_)).then_some(id);
        Request { method: self.ask.method(), params, era: self.era, token }.write(id, out);
    }

    /// Checks a message; `flight` finds its request. `Err` describes what is wrong.
    pub(super) fn look<'f>(
        &self,
        message: &[u8],
        flight: impl FnOnce(u64) -> Option<&'f mut Flight>,
    ) -> Result<Seen, String> {
        let wrong = |what: &str| Err(format!("{what}: {}", start_of(message)));
        let Ok(read) = serde_json::from_slice::<Message<'_>>(message) else { return wrong("not a message") };
        let step = read.params.as_ref().and_then(|params| params.progress_token.zip(params.progress));
        match (read.method, step, read.id, read.result) {
            (Some(method), Some((token, step)), ..) if method == "notifications/progress" => {
                let Some(flight) = flight(token) else { return wrong("progress of an unknown request") };
                flight.steps += 1;
                // Both counts start at one.
                #[expect(clippy::float_cmp, reason = "whole numbers, far from where they are not exact")]
                if step != flight.steps as f64 {
                    return wrong("a step is missing or out of order");
                }
                Ok(Seen::Step(token))
            }
            (Some(_), ..) => Ok(Seen::Aside),
            (None, _, Some(id), Some(result)) if read.error.is_none() => {
                let Some(flight) = flight(id) else { return wrong("an answer to an unknown request") };
                if self.is_right(id, flight, &result) {
                    Ok(Seen::Answer(id))
                } else {
                    wrong("a wrong answer")
                }
            }
            _ => wrong("not an answer"),
        }
    }

    fn is_right(&self, id: u64, flight: &Flight, result: &Outcome<'_>) -> bool {
        let only =
            |texts: &[Text<'_>], wanted: &dyn Fn(&str) -> bool| matches!(texts, [one] if wanted(&one.text));
        let right = match self.ask {
            Ask::Echo(_) => only(&result.content, &|text| {
                text.get(..ID).is_some_and(|hex| u64::from_str_radix(hex, 16) == Ok(id))
                    && text.get(ID..) == Some(&self.text)
            }),
            Ask::Add => {
                let sum = result.structured_content.as_ref().map(|structured| structured.sum);
                sum == Some(id as f64 + 0.5)
            }
            Ask::List => {
                let named =
                    |start: &str| result.tools.iter().filter(|tool| tool.name.starts_with(start)).count();
                named("echo") == 1 && named("dummy_") == DUMMIES
            }
            Ask::Read(size) => only(&result.contents, &|text| text.len() == size),
            Ask::Progress(n) => flight.steps == n && only(&result.content, &|text| text == "done"),
        };
        right && result.is_error != Some(true)
    }
}

/// Digits of an id in an echoed text.
const ID: usize = 16;

/// Truncates a message for display.
fn start_of(message: &[u8]) -> String {
    String::from_utf8_lossy(&message[..message.len().min(200)]).into_owned()
}

#[cfg(test)]
mod tests;
