//! A server over HTTP that is sound, except for one planted fault.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

const ENVELOPE: &str = "2026-07-28";
const HANDSHAKE: &str = "2025-11-25";
const META: &str = "io.modelcontextprotocol/protocolVersion";

/// A request over HTTP.
struct Asked {
    verb: String,
    path: String,
    headers: HashMap<String, String>,
    body: String,
}

/// A response: status, headers, body.
struct Reply(&'static str, Vec<(&'static str, String)>, String);

impl Asked {
    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (verb, path) = (words.next()?, words.next()?);
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        Some(Self { verb, path, headers, body: String::from_utf8(body).ok()? })
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// The server.
struct Faulty {
    fault: &'static str,
    origin: String,
    sessions: Mutex<HashSet<String>>,
    opened: AtomicUsize,
    is_broken: AtomicBool,
}

/// Starts a server with a fault. Returns its URL.
pub(crate) fn faulty(fault: &'static str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let url = format!("{origin}/mcp");
    let (sessions, opened) = (Mutex::default(), AtomicUsize::new(0));
    let server = Faulty { fault, origin, sessions, opened, is_broken: AtomicBool::new(false) };
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(asked) = Asked::read(&stream) else { continue };
            let Reply(status, headers, body) = server.answer(&asked);
            let mut head =
                format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
            for (name, value) in &headers {
                head.extend([*name, ": ", value.as_str(), "\r\n"]);
            }
            let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
        }
    });
    url
}

fn json(status: &'static str, body: &Value) -> Reply {
    Reply(status, vec![("Content-Type", "application/json".to_owned())], body.to_string())
}

fn empty(status: &'static str) -> Reply {
    Reply(status, Vec::new(), String::new())
}

fn error(status: &'static str, id: &Value, code: i64) -> Reply {
    json(status, &json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "refused"}}))
}

impl Faulty {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn answer(&self, asked: &Asked) -> Reply {
        if let Some(reply) = self.elsewhere(asked).or_else(|| self.refusal(asked)) {
            return reply;
        }
        match asked.verb.as_str() {
            "OPTIONS" if self.has("cors-credentials") => {
                let origin = asked.header("origin").to_owned();
                let headers = vec![
                    ("Access-Control-Allow-Origin", origin),
                    ("Access-Control-Allow-Credentials", "true".to_owned()),
                ];
                Reply("204 No Content", headers, String::new())
            }
            "OPTIONS" => empty("204 No Content"),
            "GET" if self.has("get-stream") => {
                Reply("200 OK", vec![("Content-Type", "text/html".to_owned())], "<p>Hi</p>".to_owned())
            }
            "DELETE" => {
                self.sessions.lock().unwrap().remove(asked.header("mcp-session-id"));
                empty("204 No Content")
            }
            "POST" => self.post(asked),
            _ => empty("405 Method Not Allowed"),
        }
    }

    /// Answers what is not the endpoint, or not reached at all.
    fn elsewhere(&self, asked: &Asked) -> Option<Reply> {
        if asked.path.starts_with("/.well-known/") {
            return Some(self.well_known(asked));
        }
        if self.has("redirect") && asked.path == "/mcp" {
            return Some(Reply(
                "307 Temporary Redirect",
                vec![("Location", "/mcp/".to_owned())],
                String::new(),
            ));
        }
        if self.has("wrong-path") && asked.path.starts_with("/mcp") {
            return Some(empty("404 Not Found"));
        }
        if self.has("page") {
            let html = vec![("Content-Type", "text/html".to_owned())];
            return Some(Reply("200 OK", html, "<h1>\u{1b}[2JWelcome</h1>".to_owned()));
        }
        if self.fault.starts_with("login") && asked.header("authorization") != "Bearer sesame" {
            return Some(self.challenge());
        }
        None
    }

    fn challenge(&self) -> Reply {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.origin);
        let challenge = match self.fault {
            "login-no-challenge" => return empty("401 Unauthorized"),
            "login-basic" => "Basic realm=\"x\"".to_owned(),
            "login-dead-link" => format!("Bearer resource_metadata=\"{}/.well-known/nothing\"", self.origin),
            "login-no-metadata" => "Bearer".to_owned(),
            _ => format!("Bearer resource_metadata=\"{metadata}\""),
        };
        Reply("401 Unauthorized", vec![("WWW-Authenticate", challenge)], String::new())
    }

    fn well_known(&self, asked: &Asked) -> Reply {
        let is = |name: &str| asked.path.starts_with(&format!("/.well-known/{name}"));
        let origin = &self.origin;
        let is_absent = matches!(self.fault, "login-basic" | "login-no-metadata" | "login-no-challenge");
        if is("oauth-protected-resource") && !is_absent && self.fault.starts_with("login") {
            let resource = if self.has("login-resource") {
                "http://other.example/mcp"
            } else {
                &format!("{origin}/mcp")
            };
            let servers = match self.fault {
                "login-no-authority" => json!([]),
                "login-dead-authority" => json!([format!("{origin}/nothing")]),
                _ => json!([origin]),
            };
            return json("200 OK", &json!({"resource": resource, "authorization_servers": servers}));
        }
        if asked.path == "/.well-known/oauth-authorization-server" {
            let issuer = if self.has("login-issuer") { format!("{origin}/") } else { origin.clone() };
            let methods = if self.has("login-pkce") { json!(["plain"]) } else { json!(["S256"]) };
            let token = if self.has("login-plain-http") {
                "http://login.example/token"
            } else {
                &format!("{origin}/token")
            };
            let mut document = json!({
                "issuer": issuer, "authorization_endpoint": format!("{origin}/authorize"), "token_endpoint": token,
                "code_challenge_methods_supported": methods,
            });
            if !self.has("login-registration") {
                document["registration_endpoint"] = json!(format!("{origin}/register"));
            }
            return json("200 OK", &document);
        }
        empty("404 Not Found")
    }

    /// Refuses requests by their headers.
    fn refusal(&self, asked: &Asked) -> Option<Reply> {
        let host = asked.header("host");
        let is_local = host.starts_with("127.0.0.1:") || host.starts_with("localhost:");
        if !is_local && !matches!(self.fault, "rebinding" | "host") {
            return Some(empty("403 Forbidden"));
        }
        let origin = asked.header("origin");
        let is_open = matches!(self.fault, "rebinding" | "origin" | "simple-post");
        if !origin.is_empty() && !is_open && asked.verb != "OPTIONS" {
            return Some(empty("403 Forbidden"));
        }
        if asked.verb != "POST" || matches!(self.fault, "media-type" | "simple-post") {
            return None;
        }
        let media_type = asked.header("content-type").to_ascii_lowercase();
        let is_json = match self.fault {
            "media-type-parameters" => media_type == "application/json",
            "media-type-case" => asked.header("content-type").starts_with("application/json"),
            _ => media_type.split(';').next() == Some("application/json"),
        };
        (!is_json).then(|| empty("415 Unsupported Media Type"))
    }

    fn post(&self, asked: &Asked) -> Reply {
        if self.is_broken.load(Ordering::Relaxed) {
            return empty("500 Internal Server Error");
        }
        let Ok(message) = serde_json::from_str::<Value>(&asked.body) else {
            self.is_broken.store(self.has("survives-garbage"), Ordering::Relaxed);
            let status =
                if self.has("parse-error") { "500 Internal Server Error" } else { "400 Bad Request" };
            return json(status, &json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "no JSON"}}));
        };
        let header = asked.header("mcp-protocol-version");
        let version = message["params"]["_meta"][META].as_str();
        let is_envelope = version.is_some() || header == ENVELOPE;
        let reply = if is_envelope {
            self.envelope(asked, &message, version)
        } else {
            self.handshake(asked, &message)
        };
        self.shaped(reply, &message)
    }

    /// Changes what is sent, for faults of every response.
    fn shaped(&self, reply: Reply, message: &Value) -> Reply {
        let Reply(status, mut headers, body) = reply;
        let body = match self.fault {
            "content-type" if !body.is_empty() => {
                headers.retain(|(name, _)| *name != "Content-Type");
                headers.push(("Content-Type", "text/plain".to_owned()));
                body
            }
            "response-id" => body.replace("\"id\":8", "\"id\":\"8\""),
            "jsonrpc" => body.replace("\"jsonrpc\":\"2.0\"", "\"jsonrpc\":\"1.0\""),
            "stream" if message.get("id").is_some() && status == "200 OK" => {
                headers.retain(|(name, _)| *name != "Content-Type");
                headers.push(("Content-Type", "text/event-stream".to_owned()));
                format!(
                    ": hello\r\n\r\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"x\"}}\r\n\r\nevent: message\r\ndata: {body}\r\n\r\n"
                )
            }
            _ => body,
        };
        Reply(status, headers, body)
    }

    fn envelope(&self, asked: &Asked, message: &Value, version: Option<&str>) -> Reply {
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
        if matches!(self.fault, "no-envelope" | "output-root") {
            return error("404 Not Found", id, -32601);
        }
        if version.is_none() && !self.has("meta-required") {
            return error("400 Bad Request", id, -32602);
        }
        if asked.header("mcp-method") != method && !self.has("header-mismatch") {
            return error("400 Bad Request", id, -32020);
        }
        if version.is_some_and(|version| version != ENVELOPE) && !self.has("unsupported-version") {
            let data = if self.has("unsupported-version-list") {
                json!({})
            } else {
                json!({"supported": [ENVELOPE]})
            };
            let error = json!({"code": -32022, "message": "unsupported", "data": data});
            return json("400 Bad Request", &json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        let mut result = match method {
            "server/discover" if self.has("discover") => json!({"capabilities": self.capabilities()}),
            "server/discover" => json!({
                "supportedVersions": [ENVELOPE], "capabilities": self.capabilities(), "ttlMs": 0, "cacheScope": "public",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "faulty", "version": "1"}},
            }),
            "tools/list" if !self.has("capabilities") => self.tools(&message["params"]["cursor"]),
            "prompts/list" => json!({"prompts": [{"name": "p"}]}),
            "initialize" | "ping" | "tools/list" | "resources/list" | "resources/templates/list" => {
                return error("404 Not Found", id, -32601);
            }
            _ if self.has("unknown-method") => json!({}),
            _ if self.has("unknown-method-status") => return error("200 OK", id, -32601),
            _ => return error("404 Not Found", id, -32601),
        };
        if !self.has("result-type") {
            result["resultType"] = json!("complete");
        }
        json("200 OK", &json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn capabilities(&self) -> Value {
        if self.has("undeclared") { json!({"tools": {}}) } else { json!({"tools": {}, "prompts": {}}) }
    }

    fn handshake(&self, asked: &Asked, message: &Value) -> Reply {
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
        let header = asked.header("mcp-protocol-version");
        if !matches!(header, "" | HANDSHAKE) && !self.has("version-header") {
            return error("400 Bad Request", id, -32600);
        }
        if method == "initialize" {
            return self.initialize(message);
        }
        let session = asked.header("mcp-session-id");
        if session.is_empty() && !self.has("session-required") {
            return error("400 Bad Request", id, -32600);
        }
        let is_known = self.sessions.lock().unwrap().contains(session);
        if !session.is_empty() && !is_known && !self.has("session-unknown") {
            return error("404 Not Found", id, -32600);
        }
        if id.is_null() {
            let body = if self.has("notification-status") { "{}" } else { "" };
            let status = if self.has("notification-status") { "200 OK" } else { "202 Accepted" };
            return Reply(status, Vec::new(), body.to_owned());
        }
        let result = match method {
            "ping" if self.has("ping") => return error("200 OK", id, -32601),
            "ping" => json!({}),
            "tools/list" => self.tools(&message["params"]["cursor"]),
            "prompts/list" => json!({"prompts": [{"name": "p"}]}),
            "resources/list" | "resources/templates/list" => return error("200 OK", id, -32601),
            _ if self.has("unknown-method") => json!({}),
            _ => return error("200 OK", id, -32601),
        };
        json("200 OK", &json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn initialize(&self, message: &Value) -> Reply {
        let id = &message["id"];
        if self.has("no-handshake") {
            return error("404 Not Found", id, -32601);
        }
        if self.has("negotiation") && message["params"]["protocolVersion"] != HANDSHAKE {
            return error("200 OK", id, -32602);
        }
        let mut result = json!({
            "protocolVersion": HANDSHAKE, "capabilities": self.capabilities(), "serverInfo": {"name": "faulty", "version": "1"},
        });
        if self.has("initialize") {
            result["serverInfo"] = json!({"name": "faulty"});
        }
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let session =
            if self.has("session-id") { format!("session {number}") } else { format!("session-{number}") };
        self.sessions.lock().unwrap().insert(session.clone());
        let mut reply = json("200 OK", &json!({"jsonrpc": "2.0", "id": id, "result": result}));
        reply.1.push(("Mcp-Session-Id", session));
        if self.has("cors-exposed") {
            reply.1.push(("Access-Control-Allow-Origin", "*".to_owned()));
        }
        reply
    }

    fn tools(&self, cursor: &Value) -> Value {
        let object = || json!({"type": "object"});
        let of = |properties: Value| json!({"type": "object", "properties": {"a": properties}});
        let tool =
            |name: &str, schema: Value| json!({"name": name, "description": "d", "inputSchema": schema});
        let tools = match self.fault {
            "tool-unique" => vec![tool("a", object()), tool("a", object())],
            "tool-name" => vec![tool("my tool!", object())],
            "tool-name-long" => vec![tool(&"x".repeat(65), object())],
            "hidden-text" => {
                vec![json!({"name": "a", "description": "Adds\u{202e}\u{1b}[2J", "inputSchema": object()})]
            }
            "list-shape" => vec![json!({"title": "a", "inputSchema": object()})],
            "schema-root" => vec![tool("a", json!({"properties": {}}))],
            "schema-null" => vec![tool("a", Value::Null)],
            "schema-valid" => vec![tool("a", of(json!({"type": "text"})))],
            "schema-reference" => vec![tool("a", of(json!({"$ref": "https://example.com/schema"})))],
            "schema-union" => vec![tool("a", json!({"type": "object", "oneOf": [{"required": ["a"]}]}))],
            "schema-boolean" => vec![tool("a", of(json!(true)))],
            "schema-items" => vec![tool("a", of(json!({"type": "array"})))],
            "schema-format" => vec![tool("a", of(json!({"type": "integer", "format": "uint64"})))],
            "schema-recursion" => vec![tool("a", of(json!({"$ref": "#"})))],
            "output-root" => {
                let mut one = tool("a", object());
                one["outputSchema"] = json!({"type": "array", "items": {"type": "string"}});
                vec![one]
            }
            "many" => (0..30).map(|number| tool(&format!("tool {number}"), object())).collect(),
            _ => vec![tool("a", of(json!({"type": "string"})))],
        };
        let mut list = json!({"tools": tools});
        if self.has("pages") {
            list["nextCursor"] = json!("again");
        }
        if self.has("endless") {
            let number: u64 = cursor.as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
            list["nextCursor"] = json!((number + 1).to_string());
        }
        list
    }
}
