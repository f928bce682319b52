//! Sessions with a server at a URL: over streamable HTTP, or over HTTP+SSE (2024-11-05) if the server has only that.

use duplexer_http_client::HttpTransport;

use crate::client::{Client, ClientBuilder, ConnectError, ErrorKind};

/// Opens a session. Each of the two attempts has the limit of a handshake.
pub(super) async fn open(builder: ClientBuilder, transport: HttpTransport) -> Result<Client, ConnectError> {
    let (again, older) = (builder.clone(), transport.http_sse());
    let refusal = match builder.connect(transport).await {
        Ok(client) => return Ok(client),
        Err(refusal) => refusal,
    };
    let Some(again) = again.for_http_sse(&refusal) else { return Err(refusal) };
    tracing::debug!(%refusal, "the server refuses streamable HTTP; HTTP+SSE is tried");
    match Box::pin(again.connect(older)).await {
        Err(error) if is_no_such_server(&error) => {
            tracing::debug!(%error, "the server does not offer HTTP+SSE");
            Err(refusal)
        }
        opened => opened,
    }
}

/// Returns whether a server does not offer HTTP+SSE at all. The first refusal says more then.
fn is_no_such_server(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Call(error) if matches!(
        error.kind(),
        ErrorKind::Http | ErrorKind::Protocol | ErrorKind::Closed | ErrorKind::Unreachable
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::Mutex;

    use axum::http::{HeaderMap, Method, StatusCode};
    use duplexer_http::StreamableHttp;
    use tokio::net::TcpListener;
    use tokio::task::JoinSet;

    use super::*;
    use crate::Server;
    use crate::client::{Negotiation, OpenClient as _, OpenError, OpenWith as _, PinnedVersion};

    /// Status, content type and body of a response.
    type Reply = (u16, &'static str, &'static str);

    /// A server with one response to POST and one to GET.
    struct Scripted {
        url: String,
        requests: Arc<Mutex<Vec<Method>>>,
        _serving: JoinSet<()>,
    }

    impl Scripted {
        async fn start(post: Reply, get: Reply) -> Self {
            let requests = Arc::<Mutex<Vec<Method>>>::default();
            let seen = Arc::clone(&requests);
            let respond = async move |method: Method| {
                let (status, kind, body) = if method == Method::GET { get } else { post };
                seen.lock().unwrap().push(method);
                let headers =
                    HeaderMap::from_iter([("content-type".parse().unwrap(), kind.parse().unwrap())]);
                (StatusCode::from_u16(status).unwrap(), headers, body)
            };
            let router = axum::Router::new().fallback(respond);
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/mcp", listener.local_addr().unwrap());
            let mut serving = JoinSet::new();
            serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
            Self { url, requests, _serving: serving }
        }

        fn was_tried(&self) -> bool {
            self.requests.lock().unwrap().contains(&Method::GET)
        }
    }

    /// P-LEG-24: `open` finds the transport of a server that has only HTTP+SSE.
    #[tokio::test]
    async fn a_server_with_http_sse_only_is_opened_by_its_url() {
        let server = Server::builder("old", "0").build().unwrap();
        let service = StreamableHttp::builder(server).http_sse("/sse", "/messages").build().unwrap();
        let bound = service.bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/sse", bound.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(async move { bound.serve_until(std::future::pending()).await });
        let frames = Arc::new(Mutex::new(0));
        let count = Arc::clone(&frames);
        let builder = Client::builder("c", "1").on_frame(move |_, _| *count.lock().unwrap() += 1);
        let client = builder.open(&*url).await.unwrap();
        assert_eq!(client.server_info().map(|info| info.name.as_str()), Some("old"));
        client.ping().await.unwrap();
        assert!(*frames.lock().unwrap() > 0);
        client.close().await.unwrap();
        let strict = Client::builder("c", "1").connect(HttpTransport::new(&url).unwrap()).await;
        assert_eq!(strict.unwrap_err().kind(), ErrorKind::Http);
    }

    /// P-LEG-24: a URL without any server is the first refusal, after one attempt over HTTP+SSE.
    #[tokio::test]
    async fn a_url_without_a_server_is_reported_as_refused() {
        for get in [(404, "text/plain", "no"), (200, "text/html", "hi"), (200, "text/event-stream", "")] {
            for post in [400, 404, 405] {
                let server = Scripted::start((post, "text/plain", "not here"), get).await;
                let error = Client::open(&*server.url).await.unwrap_err();
                let OpenError::Connect(refused) = &error else { panic!("{error}") };
                assert_eq!(refused.refusal().map(|refusal| refusal.status), Some(post), "{error}");
                assert!(server.was_tried());
            }
        }
    }

    /// P-LEG-24, P-ERA-8: HTTP+SSE is not tried if the refusal is about something else, or if the client is pinned.
    #[tokio::test]
    async fn other_refusals_are_final() {
        let fallback = (200, "text/event-stream", "event: endpoint\ndata: /m\n\n");
        let rpc = r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}"#;
        let replies = [
            (401, "text/plain", ""),
            (403, "text/plain", ""),
            (429, "text/plain", ""),
            (500, "text/plain", ""),
            (400, "application/json", rpc),
            (404, "application/json", rpc),
        ];
        for reply in replies {
            let server = Scripted::start(reply, fallback).await;
            Client::open(&*server.url).await.unwrap_err();
            assert!(!server.was_tried(), "{reply:?}");
        }
        let server = Scripted::start((404, "text/plain", ""), fallback).await;
        let pinned = Negotiation::Pinned(PinnedVersion::new("2026-07-28"));
        Client::builder("c", "1").negotiation(pinned).open(&*server.url).await.unwrap_err();
        assert!(!server.was_tried());
    }

    /// P-LEG-24: a login that the stream requires is reported, not the refusal before it.
    #[tokio::test]
    async fn a_refused_stream_for_want_of_a_login_is_reported() {
        let server = Scripted::start((405, "text/plain", ""), (401, "text/plain", "")).await;
        let OpenError::Connect(error) = Client::open(&*server.url).await.unwrap_err() else { panic!() };
        assert_eq!(error.kind(), ErrorKind::Unauthorized);
    }
}
