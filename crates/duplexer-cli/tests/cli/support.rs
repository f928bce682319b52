//! Runs the program, and a demo server to run it against.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_duplexer");

/// A port without a listener: it is never assigned, and its service is obsolete.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:1/mcp";

/// Exit status and output of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Returns standard output after success.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// Returns the result as JSON after success: a single line.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let text = self.ok();
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Checks that it exited with `code`, printed `line` last, and gave no result.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, line: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let last = self.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("duplexer: ") && last.contains(line), "{line:?} is not in {last:?}");
    }
}

/// Runs the program to its end with empty input.
pub(crate) fn run<W: AsRef<str>>(words: &[W]) -> Ran {
    run_with(words, "")
}

/// Runs the program to its end with `input`.
pub(crate) fn run_with<W: AsRef<str>>(words: &[W], input: &str) -> Ran {
    let mut child = spawn(words, Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    // The program can exit before it has read the input.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Folder in which the program stores tokens: of this run, below the folder of the build, which is cleaned as a whole.
pub(crate) fn data_folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("duplexer-cli-{}", std::process::id()))
}

pub(crate) fn spawn<W: AsRef<str>>(words: &[W], stdin: Stdio) -> Child {
    let words = words.iter().map(AsRef::as_ref);
    Command::new(PROGRAM)
        .args(words)
        // Tokens of the user who runs the tests are not used.
        .env("XDG_DATA_HOME", data_folder())
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The running program. It is killed on drop.
pub(crate) struct RunningServer {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<std::process::ChildStderr>,
}

impl RunningServer {
    pub(crate) fn start<W: AsRef<str>>(words: &[W]) -> Self {
        Self::of(spawn(words, Stdio::null()))
    }

    /// Takes a process whose output is piped.
    pub(crate) fn of(mut child: Child) -> Self {
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Returns the next line of standard output.
    pub(crate) fn result(&mut self) -> String {
        line_of(&mut self.stdout)
    }

    /// Returns the next line of standard error.
    pub(crate) fn note(&mut self) -> String {
        line_of(&mut self.stderr)
    }

    /// Returns its process id.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Interrupts it like Ctrl-C and returns its exit code.
    pub(crate) fn interrupt(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        // An unread pipe must not block it.
        let mut rest = String::new();
        let _ = self.stdout.read_to_string(&mut rest);
        self.child.wait().unwrap().code()
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn line_of(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// The demo server over HTTP, on its own port.
pub(crate) struct Demo {
    pub(crate) url: String,
    pub(crate) welcome: Vec<String>,
    pub(crate) running: RunningServer,
}

impl Demo {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(more: &[&str]) -> Self {
        let mut running = RunningServer::start(&[&["demo", "--port", "0"], more].concat());
        let mut welcome = vec![running.note()];
        while !welcome.last().unwrap().contains("inspector") {
            welcome.push(running.note());
        }
        let words = welcome.iter().flat_map(|line| line.split_whitespace());
        let url = words.into_iter().find(|word| word.starts_with("http://") && word.ends_with("/mcp"));
        let url = url.unwrap().to_owned();
        Self { url, welcome, running }
    }
}

/// A verb that serves HTTP, such as a proxy, and its URL.
pub(crate) struct Listening {
    pub(crate) running: RunningServer,
    pub(crate) url: String,
}

impl Listening {
    pub(crate) fn start(words: &[&str]) -> Self {
        let mut running = RunningServer::start(words);
        loop {
            let line = running.note();
            assert!(!line.is_empty(), "it has ended");
            if let Some(url) = line.split_whitespace().find(|word| word.starts_with("http://")) {
                return Self { url: url.trim_end_matches('.').to_owned(), running };
            }
        }
    }
}

/// A server and its era.
pub(crate) struct Place {
    url: Option<String>,
    era: &'static str,
}

impl Place {
    /// The demo as a program.
    pub(crate) fn stdio(era: &'static str) -> Self {
        Self { url: None, era }
    }

    /// The demo over HTTP.
    pub(crate) fn http(demo: &Demo, era: &'static str) -> Self {
        Self { url: Some(demo.url.clone()), era }
    }

    /// Returns all kinds of servers.
    pub(crate) fn all(demo: &Demo) -> [Self; 4] {
        let (handshake, envelope) = ("handshake", "envelope");
        [
            Self::stdio(handshake),
            Self::http(demo, handshake),
            Self::stdio(envelope),
            Self::http(demo, envelope),
        ]
    }

    /// Builds the command line for `words`, the verb first.
    pub(crate) fn line(&self, words: &[&str]) -> Vec<String> {
        let (verb, rest) = words.split_at(if words[0] == "task" { 2 } else { 1 });
        let mut line: Vec<String> = verb.iter().map(|word| (*word).to_owned()).collect();
        line.extend(self.url.clone());
        line.extend(rest.iter().map(|word| (*word).to_owned()));
        line.extend(["--era".to_owned(), self.era.to_owned()]);
        if self.url.is_none() {
            line.extend(["--", PROGRAM, "demo", "--stdio"].map(str::to_owned));
        }
        line
    }

    /// Runs `words` with this server.
    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        run(&self.line(words))
    }
}

/// A server with the same response to every request: status line and headers.
pub(crate) fn answering(head: &'static str) -> String {
    serving(move |_| (head, String::new()))
}

/// A server whose response is computed from the request body.
fn serving(answer: impl Fn(&str) -> (&'static str, String) + Send + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = 0;
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            loop {
                let line = line_of(&mut reader).to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let (head, body) = answer(&String::from_utf8(body).unwrap());
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
    });
    url
}

/// A server that answers `server/discover`, and everything else with the status and the member of `answer`.
fn discovered(answer: impl Fn() -> (&'static str, &'static str, Value) + Send + 'static) -> String {
    serving(move |body| {
        let request: Value = serde_json::from_str(body).unwrap();
        let (status, member, value) = if request["method"] == "server/discover" {
            let result = serde_json::json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {}}, "_meta": {},
            });
            ("200 OK", "result", result)
        } else {
            answer()
        };
        (status, serde_json::json!({"jsonrpc": "2.0", "id": request["id"], member: value}).to_string())
    })
}

/// A server that answers `server/discover` and rejects everything else with 403.
pub(crate) fn guarded() -> String {
    let error = || serde_json::json!({"code": -32600, "message": "Required scope: write"});
    discovered(move || ("403 Forbidden", "error", error()))
}

/// A server that answers `server/discover`, and everything else with a result of a type that no method has.
pub(crate) fn extended() -> String {
    discovered(|| {
        ("200 OK", "result", serde_json::json!({"resultType": "riddle", "content": [], "tools": []}))
    })
}

/// A server whose list of tools never ends: every page has a cursor of its own. Counts the pages.
pub(crate) fn endless() -> (String, Arc<AtomicUsize>) {
    let served = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&served);
    let url = discovered(move || {
        let cursor = counter.fetch_add(1, Ordering::SeqCst).to_string();
        let page = serde_json::json!({
            "resultType": "complete", "tools": [], "nextCursor": cursor, "ttlMs": 0, "cacheScope": "private",
        });
        ("200 OK", "result", page)
    });
    (url, served)
}
