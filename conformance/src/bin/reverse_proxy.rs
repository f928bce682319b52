//! A plain reverse proxy, as in front of most web servers.
//!
//! `reverse-proxy PORT UPSTREAM HOST` forwards requests to `http://127.0.0.1:PORT` to the address UPSTREAM with the host
//! name HOST, and adds `X-Forwarded-*` headers. Bodies are streamed in both directions. The first line of its output is
//! its URL.

use std::net::SocketAddr;

use duplexer::error::BoxError;
use duplexer_core::tasks::TaskTracker;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, Scheme};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

type Reply = Response<Either<Incoming, Full<Bytes>>>;

/// Hop-by-hop headers, which are never forwarded.
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Address of the upstream and its host name.
#[derive(Clone)]
struct Upstream {
    client: Client<HttpConnector, Incoming>,
    address: Authority,
    host: HeaderValue,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().ok_or("usage: reverse-proxy PORT UPSTREAM HOST");
    let listener = TcpListener::bind(("127.0.0.1", argument()?.parse::<u16>()?)).await?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let upstream = Upstream { client, address: argument()?.parse()?, host: argument()?.parse()? };
    #[expect(clippy::print_stdout, reason = "the parent process waits for this line")]
    {
        println!("http://{}", listener.local_addr()?);
    }
    let connections = TaskTracker::new();
    loop {
        let (stream, peer) = listener.accept().await?;
        connections.spawn(serve(upstream.clone(), stream, peer));
    }
}

async fn serve(upstream: Upstream, stream: TcpStream, peer: SocketAddr) {
    let pass = service_fn(|request| pass_on(&upstream, peer, request));
    // An error of a connection affects only its client.
    let _ = stream.set_nodelay(true);
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), pass).await;
}

async fn pass_on(
    upstream: &Upstream,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Reply, BoxError> {
    *request.uri_mut() = address(upstream, request.uri())?;
    let headers = request.headers_mut();
    strip(headers);
    if let Some(asked_for) = headers.insert(header::HOST, upstream.host.clone()) {
        headers.insert("x-forwarded-host", asked_for);
    }
    headers.insert("x-forwarded-proto", HeaderValue::from_static("http"));
    headers.insert("x-forwarded-for", peer.ip().to_string().parse()?);
    Ok(match upstream.client.request(request).await {
        Ok(mut response) => {
            strip(response.headers_mut());
            response.map(Either::Left)
        }
        Err(error) => {
            let mut response = Response::new(Either::Right(Full::from(error.to_string())));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    })
}

fn address(upstream: &Upstream, asked_for: &Uri) -> Result<Uri, http::uri::InvalidUriParts> {
    let mut parts = asked_for.clone().into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(upstream.address.clone());
    Uri::from_parts(parts)
}

fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|names| names.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named).chain([&HeaderName::from_static("keep-alive")]) {
        headers.remove(name);
    }
}
