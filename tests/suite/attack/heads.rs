//! Attacks on the HTTP layer: host and origin, media types, and message framing.

use tokio::io::AsyncWriteExt;

use super::site::{Post, Site};
use super::{ERAS, echo};
use crate::ENVELOPE;

/// CVE-2025-66416 and similar; R-H03, R-H05: a foreign web page cannot reach the server under another host name.
#[tokio::test]
async fn a_foreign_host_is_refused() {
    let site = Site::open().await;
    let port = site.address.port();
    for revision in ERAS {
        for host in [
            "evil.example".to_owned(),
            format!("evil.example:{port}"),
            format!("localhost:{port}@evil.example"),
            format!("127.0.0.1:{port}.evil.example"),
            "localhost.evil.example".to_owned(),
            String::new(),
        ] {
            let reply = site.send(&Post::tool(revision, "panic").instead("Host", &host)).await;
            assert!([400, 403, 421].contains(&reply.status), "{host:?}: {}", reply.status);
        }
        for other in ["evil.example", "localhost"] {
            let twice = Post::tool(revision, "panic").header("Host", other).header("Host", "evil.example");
            assert!([400, 403, 421].contains(&site.send(&twice).await.status));
        }
        let none = site.exchange(&Post::tool(revision, "panic").without("Host").bytes()).await;
        assert!(none.is_none_or(|reply| [400, 403, 421].contains(&reply.status)));
    }
    site.serves().await;
}

/// R-H06, R-H07, R-H08, R-H09, R-H21: a foreign web page cannot reach the server with its own origin, with any method.
#[tokio::test]
async fn a_foreign_origin_is_refused() {
    let site = Site::open().await;
    for revision in ERAS {
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost.evil.example:80",
            "http://127.0.0.1:80.evil.example",
            "https://localhost@evil.example",
            "file://",
            "",
        ] {
            for method in ["POST", "GET", "DELETE", "OPTIONS"] {
                let post = Post::tool(revision, "panic").method(method).header("Origin", origin);
                let reply = site.send(&post).await;
                assert_eq!(reply.status, 403, "{method} {origin:?}");
                assert!(!reply.headers.contains_key("access-control-allow-origin"));
            }
        }
    }
    site.serves().await;
}

/// CVE-2026-33252; R-H15, R-H16: the media type is parsed, not compared as text.
#[tokio::test]
async fn the_media_type_is_parsed() {
    let site = Site::open().await;
    for revision in ERAS {
        for (kind, status) in [
            ("application/json", 200),
            ("Application/JSON", 200),
            ("application/json;charset=utf-8", 200),
            ("application/json ; charset=\"utf-8\"", 200),
            ("application/jsonp", 415),
            ("application/json-seq", 415),
            ("text/plain", 415),
            ("text/plain;application/json", 415),
            ("application/x-www-form-urlencoded", 415),
            ("", 415),
        ] {
            let post = Post::of(revision, &echo(revision, 1, "x")).instead("Content-Type", kind);
            assert_eq!(site.send(&post).await.status, status, "{revision} {kind:?}");
        }
        let without = Post::of(revision, &echo(revision, 1, "x")).without("Content-Type");
        assert_eq!(site.send(&without).await.status, 415);
    }
}

/// R-H40: the end of a body is unambiguous; a smuggled request is never answered.
#[tokio::test]
async fn a_request_cannot_be_hidden_behind_another() {
    let site = Site::open().await;
    for revision in ERAS {
        let hidden = String::from_utf8(Post::of(revision, &echo(revision, 2, "hidden")).bytes()).unwrap();
        for framing in [
            "content-length: 5\r\ntransfer-encoding: chunked",
            "transfer-encoding: chunked\r\ncontent-length: 5",
            "transfer-encoding: chunked, identity",
            "transfer-encoding: xchunked",
            "transfer-encoding : chunked",
            "content-length: 5\r\ncontent-length: 6",
            "content-length: 5, 6",
            "content-length: +5",
            "content-length: 0x5",
            "content-length: -1",
        ] {
            let head = Post::raw(revision, "").head();
            let mut socket = site.connect().await;
            let _ =
                socket.stream.write_all(format!("{head}{framing}\r\n\r\n0\r\n\r\n{hidden}").as_bytes()).await;
            let mut answers = 0;
            while let Some(reply) = socket.reply().await {
                answers += 1;
                assert!(!reply.body.contains("hidden") && reply.status >= 400, "{framing:?}: {reply:?}");
            }
            assert!(answers <= 1, "{framing:?}: {answers} answers");
        }
    }
    site.serves().await;
}

/// R-H45, R-H49, R-H51: malformed HTTP is rejected and causes no internal failure.
#[tokio::test]
async fn malformed_heads_are_refused() {
    let site = Site::open().await;
    let head = Post::raw(ENVELOPE, "").head();
    let line = "POST /mcp HTTP/1.1\r\n";
    for (what, bytes) in [
        ("a chunk of 2^64", format!("{head}transfer-encoding: chunked\r\n\r\n10000000000000000\r\nx")),
        ("a chunk that is no number", format!("{head}transfer-encoding: chunked\r\n\r\nxyz\r\nx")),
        ("ten thousand headers", format!("{head}{}\r\n", "x-many: 1\r\n".repeat(10_000))),
        ("a header of 1 MiB", format!("{head}x-large: {}\r\n\r\n", "x".repeat(1 << 20))),
        ("a line of 1 MiB", format!("POST /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(1 << 20))),
        ("another version", "POST /mcp HTTP/9.9\r\nhost: localhost\r\n\r\n".to_owned()),
        ("no version", "POST /mcp\r\n\r\n".to_owned()),
        ("no method", " /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned()),
        ("a space in a name", format!("{line}host : localhost\r\n\r\n")),
        ("no name", format!("{line}host: localhost\r\n: x\r\n\r\n")),
        ("a zero in a value", format!("{line}host: localhost\r\nx: a\0b\r\n\r\n")),
        ("a folded header", format!("{line}host: localhost\r\nx: a\r\n b\r\n\r\n")),
        (
            "another protocol",
            "\x16\x03\x01\x02\x00\x01\x00\x01 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n".to_owned(),
        ),
    ] {
        if let Some(reply) = site.exchange(bytes.as_bytes()).await {
            assert!((400..500).contains(&reply.status) || reply.status == 505, "{what}: {}", reply.status);
        }
    }
    site.serves().await;
}

/// R-H30: a body beyond the limit is rejected by its announced length, or while it is received.
#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let site = Site::open().await;
    for revision in ERAS {
        let head = Post::raw(revision, "").head();
        let mut socket = site.connect().await;
        socket.send(format!("{head}content-length: 67108864\r\n\r\n{{").as_bytes()).await;
        let reply = socket.reply().await.expect("a refusal without the body");
        assert_eq!((reply.status, reply.code()), (413, -32600));
        assert!(socket.is_closed().await);

        let mut socket = site.connect().await;
        socket.send(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes()).await;
        let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
        // More than the limit of 4 MiB; the server may stop reading before the end.
        for _ in 0..5 {
            let _ = socket.stream.write_all(chunk.as_bytes()).await;
        }
        assert_eq!(socket.reply().await.map(|reply| reply.status), Some(413));
    }
    site.serves().await;
}

/// A compression bomb in an unsupported coding is not decompressed.
#[tokio::test]
async fn a_coded_body_is_refused() {
    let site = Site::open().await;
    for revision in ERAS {
        for coding in ["gzip", "deflate", "br", "zstd", "gzip, identity"] {
            let post = Post::of(revision, &echo(revision, 1, "x")).header("Content-Encoding", coding);
            assert_eq!(site.send(&post).await.status, 415, "{coding}");
        }
    }
}

/// R-M66: a routing header must not be repeated, even with equal values.
#[tokio::test]
async fn a_routing_header_must_appear_once() {
    let site = Site::open().await;
    for (name, value) in [
        ("MCP-Protocol-Version", "2025-11-25"),
        ("MCP-Protocol-Version", ENVELOPE),
        ("Mcp-Method", "tools/list"),
        ("mcp-method", "tools/call"),
        ("Mcp-Name", "panic"),
    ] {
        let post = Post::of(ENVELOPE, &echo(ENVELOPE, 1, "x")).header(name, value);
        let reply = site.send(&post).await;
        assert_eq!((reply.status, reply.code()), (400, -32020), "{name}: {value}");
    }
}
