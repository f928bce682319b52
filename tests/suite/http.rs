//! Frames over HTTP: each line is a POST on a connection of its own, and the frames of its response come back as lines.
//!
//! Only HTTP itself is taken off here. What the frames say is the behaviours' business, as over any other link.

use std::net::SocketAddr;
use std::sync::Arc;

use duplexer_core::dispatch::RunError;
use duplexer_http::{Responses, StreamableHttp};
use duplexer_types::headers;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinSet;

use crate::ENVELOPE;
use crate::wire::{Reader, Writer};

/// Serves on a socket and carries frames to it, until there are no more and all of them have been responded to.
pub async fn carry(
    service: StreamableHttp,
    form: Responses,
    from: Reader,
    to: Writer,
) -> Result<(), RunError> {
    let bound = service.bind("127.0.0.1:0").await.unwrap();
    let address = bound.local_addr().unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let mut serving = JoinSet::new();
    serving.spawn(bound.run(async { drop(ended.await) }));
    let (mut lines, to) = (BufReader::new(from).lines(), Arc::new(Mutex::new(to)));
    let mut posts = JoinSet::new();
    loop {
        tokio::select! {
            // Looked at while there are lines too, so that whatever went wrong is known at once.
            Some(posted) = posts.join_next() => posted.unwrap(),
            line = lines.next_line() => match line.unwrap() {
                Some(line) => drop(posts.spawn(post(address, form, line, Arc::clone(&to)))),
                None => break,
            },
        }
    }
    while let Some(posted) = posts.join_next().await {
        posted.unwrap();
    }
    drop(end);
    serving.join_next().await.unwrap().unwrap();
    Ok(())
}

async fn post(address: SocketAddr, form: Responses, line: String, to: Arc<Mutex<Writer>>) {
    let frame: Value = serde_json::from_str(&line).unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let response = sender.send_request(request(address, &frame, line)).await.unwrap();
    if frame.get("id").is_none() {
        assert_eq!(response.status(), StatusCode::ACCEPTED, "{frame}");
        return;
    }
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    match kind.as_deref() {
        Some("application/json") => {
            let body = response.into_body().collect().await.unwrap().to_bytes();
            tell(&to, &body).await;
        }
        Some("text/event-stream") if form == Responses::Streaming => events(response, &to).await,
        other => panic!("{other:?} in answer to {frame}"),
    }
}

/// With the headers that say what the body does.
fn request(address: SocketAddr, frame: &Value, line: String) -> Request<Full<Bytes>> {
    let (method, params) = (frame["method"].as_str().unwrap(), &frame["params"]);
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str().unwrap_or(ENVELOPE);
    let request = Request::post("/mcp")
        .header("host", address.to_string())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header(headers::PROTOCOL_VERSION.lower, version)
        .header(headers::METHOD.lower, method);
    let named = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    let request = match named {
        Some(name) => request.header(headers::NAME.lower, &*headers::encode(name)),
        None => request,
    };
    request.body(Full::from(line)).unwrap()
}

/// Passes on every event as soon as it is whole.
async fn events(response: Response<Incoming>, to: &Mutex<Writer>) {
    let (mut body, mut text) = (response.into_body(), Vec::new());
    while let Some(piece) = body.frame().await {
        text.extend_from_slice(piece.unwrap().data_ref().map_or(&[], |data| data));
        while let Some(end) = text.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let event: Vec<_> = text.drain(..end + 4).collect();
            let lines = event.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            for data in lines.filter_map(|line| line.strip_prefix(b"data: ")) {
                tell(to, data).await;
            }
        }
    }
}

async fn tell(to: &Mutex<Writer>, frame: &[u8]) {
    let mut to = to.lock().await;
    to.write_all(&[frame, b"\n"].concat()).await.unwrap();
    to.flush().await.unwrap();
}
