//! Attacks through an offered directory: special files, large files, and links to hidden ones.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use tokio::time::{Instant, timeout};

use super::load::{BOUND, send_shutdown_signal};
use super::site::{Post, Site};
use super::{ERAS, request};

/// A directory that is removed at the end of a test.
struct Offered(PathBuf);

impl Offered {
    fn new(name: &str) -> Self {
        let base = std::env::temp_dir().join(format!("duplexer-attack-{name}-{}", std::process::id()));
        fs::create_dir_all(base.join(".hidden")).unwrap();
        fs::write(base.join("plain.txt"), "plain").unwrap();
        fs::write(base.join(".hidden/key"), "secret").unwrap();
        symlink(".hidden/key", base.join("link.txt")).unwrap();
        symlink("/dev/zero", base.join("zero.txt")).unwrap();
        symlink("/etc/hostname", base.join("outside.txt")).unwrap();
        // Sparse: it takes no space on the disk.
        File::create(base.join("huge.txt")).unwrap().set_len(1 << 30).unwrap();
        assert!(Command::new("mkfifo").arg(base.join("pipe.txt")).status().unwrap().success());
        Self(base)
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(revision: &str, name: &str) -> Post {
    let params = json!({ "uri": format!("test://offered/{name}") });
    Post::of(revision, &request(revision, 1, "resources/read", params))
}

/// Hardening, finding 12: only regular files of the directory are read, and none beyond the size limit.
#[tokio::test]
async fn only_regular_files_within_the_limit_are_served() {
    let offered = Offered::new("regular");
    let site = Site::offering(&offered.0).await;
    #[cfg(target_os = "linux")]
    let before = super::load::peak(site.child.id().unwrap());
    for revision in ERAS {
        let reply = site.send(&read(revision, "plain.txt")).await;
        assert_eq!(reply.answer()["result"]["contents"][0]["text"], "plain", "{}", reply.body);
        let names =
            ["link.txt", "zero.txt", "outside.txt", "huge.txt", "pipe.txt", ".hidden/key", "../plain.txt"];
        for name in names {
            let reply = site.send(&read(revision, name)).await;
            assert!(reply.code() < 0 && !reply.body.contains("secret"), "{name}: {}", reply.body);
        }
    }
    #[cfg(target_os = "linux")]
    {
        let grown = super::load::peak(site.child.id().unwrap()) - before;
        assert!(grown < 32 << 20, "{grown} bytes");
    }
}

/// Hardening, finding 12: reading named pipes takes no thread, and does not prevent the exit.
#[tokio::test]
async fn named_pipes_hold_nothing_up() {
    let offered = Offered::new("pipes");
    let mut site = Site::offering(&offered.0).await;
    let mut readers = Vec::new();
    for turn in 0..600 {
        let mut socket = site.connect().await;
        socket.send(&read(ERAS[turn % 2], "pipe.txt").bytes()).await;
        readers.push(socket);
    }
    let reply = site.send(&read(ERAS[0], "plain.txt")).await;
    assert_eq!(reply.answer()["result"]["contents"][0]["text"], "plain", "{}", reply.body);
    send_shutdown_signal(&site.child);
    assert!(timeout(BOUND, site.child.wait()).await.expect("an end").unwrap().success());
}

/// Hardening, finding 13: a blocking tool does not prevent the exit.
#[tokio::test]
async fn a_blocking_tool_does_not_prevent_the_exit() {
    let mut site = Site::open().await;
    let mut callers = Vec::new();
    for turn in 0..20 {
        let mut socket = site.connect().await;
        socket.send(&Post::tool(ERAS[turn % 2], "block").bytes()).await;
        callers.push(socket);
    }
    site.serves().await;
    let start = Instant::now();
    send_shutdown_signal(&site.child);
    let status = timeout(2 * BOUND, site.child.wait()).await.expect("an end").unwrap();
    assert!(start.elapsed() < BOUND && status.success(), "{:?} {status}", start.elapsed());
}
