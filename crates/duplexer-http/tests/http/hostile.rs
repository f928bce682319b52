//! Peers that violate HTTP.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::support::{Post, Site, many_descriptors};

/// Robustness H40: the end of a body is unambiguous; a smuggled request is never answered.
#[tokio::test]
async fn a_request_cannot_be_hidden_in_another() {
    let site = Site::new().await;
    let hidden = String::from_utf8(Post::tool("hidden").bytes(site.address)).unwrap();
    for framing in [
        "content-length: 5\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 5",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: xchunked",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: +5",
        "content-length: 5, 6",
    ] {
        // An unknown path and a foreign host do not bypass it.
        for (path, host) in [("/mcp", "localhost"), ("/nowhere", "localhost"), ("/mcp", "evil.example")] {
            let mut wire = site.connect().await;
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: */*\r\n{framing}\r\n\r\n"
            );
            wire.send(format!("{head}0\r\n\r\n{hidden}").as_bytes()).await;
            let mut answers = 0;
            while let Some(reply) = wire.maybe_reply().await {
                answers += 1;
                assert_ne!(reply.status, 200, "{path} {host} {framing}: {}", reply.text());
            }
            assert!(answers <= 1, "{path} {host} {framing}: {answers} answers");
        }
    }
}

/// Robustness H49, H51 and others: malformed HTTP is rejected and the connection closed.
#[tokio::test]
async fn malformed_heads_are_refused() {
    let site = Site::new().await;
    let many = "x-many: 1\r\n".repeat(10_000);
    let large = format!("x-large: {}\r\n", "x".repeat(200 * 1024));
    for (what, head) in [
        ("ten thousand headers", format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{many}\r\n")),
        ("a large header", format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{large}\r\n")),
        ("another version", "POST /mcp HTTP/9.9\r\nhost: localhost\r\n\r\n".to_owned()),
        ("no version", "POST /mcp\r\n\r\n".to_owned()),
        ("a space in a name", "POST /mcp HTTP/1.1\r\nhost : localhost\r\n\r\n".to_owned()),
        ("a bare line feed in a value", "POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: a\0b\r\n\r\n".to_owned()),
        ("a chunk of 2^64", "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\nx".to_owned()),
        ("nonsense", "\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03 aaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n".to_owned()),
    ] {
        let mut wire = site.connect().await;
        // The server can reject before it has read everything.
        let _ = tokio::io::AsyncWriteExt::write_all(&mut wire.stream, head.as_bytes()).await;
        if let Some(reply) = wire.maybe_reply().await {
            assert!((400..500).contains(&reply.status) || reply.status == 505, "{what}: {}", reply.status);
        }
    }
    assert_eq!(site.post(&Post::tool("echo")).await.status, 200);
}

/// Robustness 3.1, H62: half-open heads and bodies do not delay other clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_peers_do_not_delay_other_clients() {
    many_descriptors();
    let site = Site::new().await;
    let mut half = Vec::new();
    for index in 0..2000 {
        let mut wire = site.connect().await;
        let start: &[u8] = match index % 4 {
            0 => b"P",
            1 => b"POST /mcp HTTP/1.1\r\nhost: local",
            2 => b"PRI * HTTP/2.0\r\n",
            _ => b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\ncontent-length: 100\r\n\r\n{",
        };
        wire.send(start).await;
        half.push(wire);
    }
    let start = Instant::now();
    for _ in 0..10 {
        assert_eq!(site.post(&Post::tool("echo")).await.status, 200);
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

/// R-H62: a connection without a complete head is closed after 30 s.
#[tokio::test(start_paused = true)]
async fn half_open_peers_are_cut() {
    let site = Site::new().await;
    let body = Post { body: "{".into(), ..Post::tool("echo") }.header("content-length", "100");
    for start in [
        b"".to_vec(),
        b"P".to_vec(),
        b"POST /mcp HTTP/1.1\r\nhost: local".to_vec(),
        b"PRI * HTTP/2.0\r\n".to_vec(),
        body.bytes(site.address),
    ] {
        let begun = Instant::now();
        let mut wire = site.connect().await;
        wire.send(&start).await;
        let closed = timeout(Duration::from_secs(200), wire.is_closed());
        assert!(closed.await.is_ok(), "{:?}", String::from_utf8_lossy(&start));
        assert!(begun.elapsed() < Duration::from_secs(65), "{:?}", begun.elapsed());
    }
}

/// An idle connection is kept for two minutes, one with a partial head for 30 s, even if bytes keep arriving.
#[tokio::test(start_paused = true)]
async fn idle_connections_are_kept_and_dripping_ones_are_not() {
    let site = Site::new().await;
    let mut wire = site.connect().await;
    for _ in 0..3 {
        wire.send(&Post::tool("echo").bytes(site.address)).await;
        assert_eq!(wire.reply().await.status, 200);
        tokio::time::sleep(Duration::from_secs(100)).await;
    }
    let begun = Instant::now();
    let dripping = async {
        for byte in b"POST /mcp HTTP/1.1\r\nx-long: ".iter().chain(std::iter::repeat(&b'x')) {
            if tokio::io::AsyncWriteExt::write_all(&mut wire.stream, &[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    };
    timeout(Duration::from_secs(200), dripping).await.expect("the connection is cut");
    assert!((25..60).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());

    let mut wire = site.connect().await;
    wire.send(&Post::tool("echo").bytes(site.address)).await;
    wire.reply().await;
    let begun = Instant::now();
    let mut byte = [0];
    let ended = tokio::io::AsyncReadExt::read(&mut wire.stream, &mut byte).await;
    assert!(matches!(ended, Ok(0) | Err(_)));
    assert!((119..125).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

/// A connection with a long call is not idle.
#[tokio::test(start_paused = true)]
async fn a_long_call_outlives_every_timeout_of_the_connection() {
    let site = Site::new().await;
    let mut wire = site.connect().await;
    wire.send(&Post::tool("go").bytes(site.address)).await;
    wire.head().await.unwrap();
    for _ in 0..30 {
        assert_eq!(wire.chunk().await.unwrap(), b": ping\r\n\r\n");
    }
    site.stage.go.notify_one();
    assert!(String::from_utf8(wire.chunk().await.unwrap()).unwrap().contains("done"));
}
