//! Which requests are accepted, over a real socket.

use duplexer_http::Cors;
use serde_json::Value;

use crate::support::{Post, Site};

/// SEC-02, P-HTTP-2; robustness H03, H05: 403 and a text that says what to change.
#[tokio::test]
async fn a_foreign_host_is_refused() {
    let site = Site::new().await;
    for host in [
        "evil.example",
        "localhost:1@evil.example",
        "127.0.0.1:80.evil.example",
        "localhost.evil.example",
        "",
    ] {
        let reply = site.post(&Post::tool("echo").header("host", host)).await;
        assert!(
            reply.status == 403 || (host.contains('@') && reply.status == 400),
            "{host}: {}",
            reply.status
        );
    }
    let reply = site.post(&Post::tool("echo").header("host", "mcp.example.com")).await;
    let text = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(text.contains("'mcp.example.com'") && text.contains("public_url"), "{text}");
    assert_eq!(reply.json().get("id"), None);
    let twice = Post::tool("echo").header("host", "localhost").header("host", "evil.example");
    assert!(matches!(site.post(&twice).await.status, 400 | 403));
    let absolute = Post::tool("echo").path("http://evil.example/mcp").header("host", "localhost");
    assert_eq!(site.post(&absolute).await.status, 403);
    let open = Site::with(|builder| builder.public_url("https://mcp.example.com/mcp")).await;
    assert_eq!(open.post(&Post::tool("echo").header("host", "mcp.example.com")).await.status, 200);
    assert_eq!(open.post(&Post::tool("echo")).await.status, 200, "this machine stays allowed");
}

/// SEC-03, P-HTTP-2; robustness H06..H09.
#[tokio::test]
async fn a_foreign_origin_is_refused_with_every_method() {
    let site = Site::new().await;
    for origin in [
        "http://evil.example",
        "null",
        "http://localhost.evil.example:80",
        "http://127.0.0.1:80.evil.example",
    ] {
        for method in ["POST", "GET", "DELETE", "OPTIONS"] {
            let reply = site.post(&Post::tool("echo").method(method).header("origin", origin)).await;
            assert_eq!(reply.status, 403, "{method} {origin}");
            assert_eq!(reply.header("access-control-allow-origin"), None);
        }
    }
    assert_eq!(site.post(&Post::tool("echo").header("origin", "http://localhost:5173")).await.status, 200);
}

/// SEC-01, P-HTTP-22; robustness H15, H16.
#[tokio::test]
async fn the_media_type_must_be_json() {
    let site = Site::new().await;
    for (kind, status) in [
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("application/jsonp", 415),
        ("text/plain", 415),
    ] {
        let reply = site.post(&Post::tool("echo").without("content-type").header("content-type", kind)).await;
        assert_eq!(reply.status, status, "{kind}");
    }
    let reply = site.post(&Post::tool("echo").without("content-type")).await;
    assert_eq!((reply.status, reply.code()), (415, -32600));
    assert_eq!(site.post(&Post::tool("echo").header("content-encoding", "gzip")).await.status, 415);
}

/// P-HTTP-25: off by default; with CORS allowed origins can send and read.
#[tokio::test]
async fn scripts_of_other_origins_are_allowed_only_with_cors() {
    let preflight = |origin: &str| {
        Post::body("")
            .method("OPTIONS")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header(
                "access-control-request-headers",
                "content-type,mcp-method, Mcp-Param-Region,x-evil,authorization",
            )
    };
    let site = Site::with(|builder| builder.allow_origin("https://app.example.com")).await;
    assert_eq!(site.post(&preflight("https://app.example.com")).await.status, 405);
    let reply = site.post(&Post::tool("echo").header("origin", "https://app.example.com")).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, None));

    let site =
        Site::with(|builder| builder.allow_origin("https://app.example.com").cors(Cors::AllowedOrigins))
            .await;
    let reply = site.post(&preflight("https://app.example.com")).await;
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (204, Some("https://app.example.com"))
    );
    let allowed = reply.header("access-control-allow-headers").unwrap();
    assert_eq!(allowed, "content-type, mcp-method, Mcp-Param-Region, authorization");
    assert_eq!(site.post(&preflight("https://evil.example")).await.status, 403);
    for post in [Post::tool("echo"), Post::tool("tell"), Post::body("{")] {
        let reply = site.post(&post.header("origin", "https://app.example.com")).await;
        assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example.com"));
        let exposed = reply.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("Mcp-Session-Id") && exposed.contains("WWW-Authenticate"));
        assert_eq!(reply.header("vary"), Some("Origin"));
    }
    assert_eq!(site.post(&Post::tool("echo")).await.header("access-control-allow-origin"), None);

    let site = Site::with(|builder| builder.allow_any_origin().cors(Cors::AllowedOrigins)).await;
    for origin in ["https://evil.example", "null"] {
        let reply = site.post(&preflight(origin)).await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (204, Some(origin)));
        let reply = site.post(&Post::tool("echo").header("origin", origin)).await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some(origin)));
    }
}

/// People read these texts in the errors of their clients and in browsers.
#[tokio::test]
async fn a_wrong_address_is_answered_with_the_right_one() {
    let served = "nothing is served here; the MCP endpoint is";
    let site = Site::new().await;
    let reply = site.post(&Post::tool("echo").path("/wrong")).await;
    assert_eq!((reply.status, reply.text()), (404, format!("{served} /mcp\n")));
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    let site = Site::with(|builder| builder.path("/tools")).await;
    let reply = site.post(&Post::tool("echo").path("/mcp")).await;
    assert_eq!((reply.status, reply.text()), (404, format!("{served} /tools\n")));
    let site = Site::with(|builder| builder.handshake(duplexer_http::Handshake::Sessions)).await;
    let page = Post::body("").method("GET").header("accept", "text/html,*/*;q=0.8");
    let reply = site.post(&page).await;
    let text = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(reply.status == 400 && text.contains("this is an MCP endpoint"), "{text}");
    let reply = site.post(&Post::body("[]")).await;
    let text = "Body must be a single JSON-RPC request or notification object";
    assert_eq!((reply.status, reply.json()["error"]["message"].as_str()), (400, Some(text)));
}

/// SEC-05; robustness H30: by the declared length, or while the body arrives.
#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let site = Site::with(|builder| builder.max_body(1000)).await;
    let mut wire = site.connect().await;
    let announced = Post { body: String::new(), ..Post::tool("echo") }.header("content-length", "67108864");
    wire.send(&announced.bytes(site.address)).await;
    let reply = wire.reply().await;
    assert_eq!((reply.status, reply.code()), (413, -32600));
    assert_eq!(reply.json()["error"]["message"], "Request body too large");
    assert!(wire.is_closed().await);

    let mut wire = site.connect().await;
    let head = Post { body: String::new(), ..Post::tool("echo") }.header("transfer-encoding", "chunked");
    wire.send(&head.bytes(site.address)).await;
    wire.send(format!("3e9\r\n{}\r\n", "x".repeat(1001)).as_bytes()).await;
    assert_eq!(wire.reply().await.status, 413);
    let fits = Post::tool(&"x".repeat(100));
    assert!(fits.body.len() < 1000);
    assert_eq!(site.post(&fits).await.status, 200);
}

/// Health routes are exempt from every check.
#[tokio::test]
async fn probes_answer_when_asked_for() {
    let probe = |path: &str| Post::body("").method("GET").path(path).header("host", "10.0.0.7");
    let site = Site::new().await;
    assert_eq!(site.post(&probe("/livez")).await.status, 404);
    let site = Site::bound(|builder| builder, duplexer_http::HttpServer::health_routes).await;
    for path in ["/livez", "/readyz"] {
        assert_eq!(site.post(&probe(path)).await.status, 200, "{path}");
    }
    assert_eq!(site.post(&probe("/mcp")).await.status, 403);
}

/// Internal errors are not sent to the client.
#[tokio::test]
async fn a_panic_is_answered_without_its_text() {
    let site = Site::new().await;
    for _ in 0..3 {
        let reply = site.post(&Post::tool("panic")).await;
        assert_eq!(reply.json()["error"].get("data"), None::<&Value>);
        assert!(!reply.text().contains("badly"));
    }
}
