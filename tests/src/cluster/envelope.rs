//! Requests of the envelope era: each stands alone.

use std::sync::Arc;

use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{Front, STUCK, Sent, pause, refused, request};
use super::report::{Failure, Finding, Kind, Outcome};
use crate::reply::{Events, Reply};

/// The revision of the envelope era.
const ENVELOPE: &str = "2026-07-28";

/// A client of the envelope era.
#[derive(Clone)]
pub struct EnvelopeClient {
    /// What it is reached through.
    pub front: Arc<Front>,
    /// The bearer text, which is the principal.
    pub name: String,
}

/// A response that has begun.
pub struct Answer {
    /// The node that responds.
    pub node: Option<usize>,
    /// When the request was sent.
    pub from: Instant,
    body: AnswerBody,
}

enum AnswerBody {
    Whole(Option<Value>),
    Events(Events),
}

impl EnvelopeClient {
    /// Sends a request. It is sent again only if a node has refused it with 503.
    pub async fn send(&self, method: &str, params: Value) -> Outcome<Answer> {
        let from = Instant::now();
        loop {
            match self.front.send(self.request(method, params.clone())).await {
                Sent::Reply(reply) if reply.status == 200 => return Ok(self.answer(reply, from).await),
                Sent::Reply(reply) if reply.status != 503 => return Err(refused(method, &reply)),
                Sent::Broken(node) => return Err(Failure::Broken { node, from }),
                Sent::Reply(_) => pause(from + STUCK, || format!("{method} (envelope)")).await?,
            }
        }
    }

    /// Calls a tool, and returns its result.
    pub async fn call(&self, params: Value) -> Outcome<(Value, Option<usize>)> {
        let mut answer = self.send("tools/call", params).await?;
        let message = answer.result().await?;
        Ok((message, answer.node))
    }

    async fn answer(&self, reply: Reply, from: Instant) -> Answer {
        let node = self.front.node_of(&reply);
        let body = if reply.is_stream() {
            AnswerBody::Events(reply.events())
        } else {
            let message = reply.json().await;
            AnswerBody::Whole(message.is_object().then_some(message))
        };
        Answer { node, from, body }
    }

    fn request(&self, method: &str, mut params: Value) -> Request<Full<bytes::Bytes>> {
        let token = params["_meta"]["progressToken"].take();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": ENVELOPE,
            "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        });
        if !token.is_null() {
            params["_meta"]["progressToken"] = token;
        }
        let mut head = Request::builder()
            .method("POST")
            .uri("/mcp")
            .header("host", "127.0.0.1")
            .header("authorization", format!("Bearer {}", self.name))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", ENVELOPE)
            .header("mcp-method", method);
        if let Some(name) = params["name"].as_str() {
            head = head.header("mcp-name", name);
        }
        head.body(request(1, method, params).to_string().into()).expect("a request")
    }
}

impl Answer {
    /// Returns the next message. `None` at the end of a stream.
    pub async fn next(&mut self) -> Option<Value> {
        match &mut self.body {
            AnswerBody::Whole(message) => message.take(),
            AnswerBody::Events(events) => loop {
                if let Some(message) = events.next().await?.message {
                    return Some(message);
                }
            },
        }
    }

    /// Reads the rest, and returns the result. A stream of this era ends with its connection.
    pub async fn result(&mut self) -> Outcome<Value> {
        while let Some(mut message) = self.next().await {
            if message.get("method").is_some() {
                continue;
            }
            if message.get("result").is_none() {
                return Err(Finding::new(Kind::Refused, format!("an error: {message}")).into());
            }
            return Ok(message["result"].take());
        }
        Err(Failure::Broken { node: self.node, from: self.from })
    }
}
