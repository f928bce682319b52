//! Transcripts in files: JSON lines, described in `docs/transcripts.md`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use duplexer_types::json::Json;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Sender, TranscriptMessage};

/// Version of the format.
const VERSION: u64 = 1;
/// Maximum bytes of a line.
const MAX_LINE: u64 = 16 * 1024 * 1024;
/// Maximum bytes of a file.
const MAX_FILE: u64 = 256 * 1024 * 1024;

/// Why a transcript cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The file cannot be read.
    #[error("{file} cannot be read")]
    Read {
        /// Path of the file.
        file: String,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// A line is not what the format requires.
    #[error("line {line} of the transcript: {fault}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        fault: String,
    },
}

/// The first line.
#[derive(Deserialize, Serialize)]
struct Head<'a> {
    duplexer: &'a str,
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
}

/// What is checked of a first line.
#[derive(Deserialize)]
struct ReadHead {
    duplexer: Option<String>,
    version: Option<u64>,
}

/// A message.
#[derive(Deserialize, Serialize)]
struct Line {
    at_ms: u64,
    from: From,
    #[serde(default = "first", skip_serializing_if = "is_first")]
    connection: u64,
    message: Json,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum From {
    Client,
    Server,
}

fn first() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_first(connection: &u64) -> bool {
    *connection == 1
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Vec<TranscriptMessage>, TranscriptError> {
    let failed = |error| TranscriptError::Read { file: path.display().to_string(), error };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() > MAX_FILE {
        return Err(failed(io::Error::other("it is larger than 256 MiB")));
    }
    parse(BufReader::new(file.take(MAX_FILE)))
}

/// Reads the lines of a transcript.
pub(super) fn parse(mut input: impl BufRead) -> Result<Vec<TranscriptMessage>, TranscriptError> {
    let (mut messages, mut has_head, mut number) = (Vec::<TranscriptMessage>::new(), false, 0);
    let mut bytes = Vec::new();
    loop {
        number += 1;
        let fault = |fault: String| TranscriptError::Line { line: number, fault };
        bytes.clear();
        let read = input.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut bytes);
        read.map_err(|error| fault(error.to_string()))?;
        if bytes.is_empty() {
            break;
        }
        let is_complete = bytes.last() == Some(&b'\n');
        if bytes.len() as u64 > MAX_LINE {
            return Err(fault("it is longer than 16 MiB".to_owned()));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| fault("it is not UTF-8".to_owned()))?;
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            continue;
        }
        if !has_head {
            head(text).map_err(fault)?;
            has_head = true;
            continue;
        }
        match message(text) {
            Ok(message) if messages.last().is_some_and(|last| last.at > message.at) => {
                return Err(fault("its `at_ms` is before that of the line above".to_owned()));
            }
            Ok(message) => messages.push(message),
            // A recording that was cut off.
            Err(_) if !is_complete && serde_json::from_str::<Json>(text).is_err() => break,
            Err(reason) => return Err(fault(reason)),
        }
    }
    if has_head {
        return Ok(messages);
    }
    Err(TranscriptError::Line { line: 1, fault: "the file is empty".to_owned() })
}

fn head(text: &str) -> Result<(), String> {
    let head: Option<ReadHead> = serde_json::from_str(text).ok();
    match head {
        Some(ReadHead { duplexer: Some(kind), version: Some(VERSION) }) if kind == "transcript" => Ok(()),
        Some(ReadHead { duplexer: Some(kind), version: Some(version) }) if kind == "transcript" => {
            Err(format!("version {version} is not supported, only {VERSION}"))
        }
        _ => Err("it must be {\"duplexer\":\"transcript\",\"version\":1}".to_owned()),
    }
}

fn message(text: &str) -> Result<TranscriptMessage, String> {
    let line: Line = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let from = match line.from {
        From::Client => Sender::Client,
        From::Server => Sender::Server,
    };
    let text = line.message.as_str();
    if !text.starts_with('{') && !text.starts_with('[') {
        return Err("`message` is neither an object nor an array".to_owned());
    }
    let at = Duration::from_millis(line.at_ms);
    Ok(TranscriptMessage { at, from, connection: line.connection, text: text.to_owned() })
}

/// Writes a transcript, message by message.
///
/// ```
/// use duplexer::testing::{Sender, Transcript, TranscriptWriter};
///
/// # fn main() -> Result<(), duplexer::BoxError> {
/// let mut file = Vec::new();
/// let mut writer = TranscriptWriter::new(&mut file, Some("stdio"), Some("my-server"))?;
/// writer.write(Sender::Client, 1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)?;
/// assert_eq!(Transcript::parse(&String::from_utf8(file)?)?.messages().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TranscriptWriter<W> {
    output: W,
    begun: Option<Instant>,
    last: Duration,
}

impl<W: Write> TranscriptWriter<W> {
    /// Writes the first line. `transport` is `stdio` or `http`; `target` names the server, for people.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn new(mut output: W, transport: Option<&str>, target: Option<&str>) -> io::Result<Self> {
        let by = Some(concat!("duplexer ", env!("CARGO_PKG_VERSION")));
        let head = Head { duplexer: "transcript", version: VERSION, transport, target, by };
        line(&mut output, &head)?;
        Ok(Self { output, begun: None, last: Duration::ZERO })
    }

    /// Writes a message that passes now. Returns whether the text is one: other text is left out.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn write(&mut self, from: Sender, connection: u64, text: &str) -> io::Result<bool> {
        let now = Instant::now();
        let at = now.duration_since(*self.begun.get_or_insert(now));
        self.write_at(at, from, connection, text)
    }

    pub(super) fn write_at(
        &mut self,
        at: Duration,
        from: Sender,
        connection: u64,
        text: &str,
    ) -> io::Result<bool> {
        // Line ends are only between the parts of a message: strings have none.
        let Ok(message) = Json::parse(&text.replace(['\n', '\r'], " ")) else { return Ok(false) };
        if !message.as_str().starts_with(['{', '[']) {
            return Ok(false);
        }
        self.last = self.last.max(at);
        let from = match from {
            Sender::Client => From::Client,
            Sender::Server => From::Server,
        };
        let at_ms = u64::try_from(self.last.as_millis()).unwrap_or(u64::MAX);
        line(&mut self.output, &Line { at_ms, from, connection, message })?;
        Ok(true)
    }

    /// Hands all lines to the system.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

fn line(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    output.write_all(&text)
}
