//! Parser of HTTP/1.1 responses: heads, bodies with a length, and chunked bodies.

/// A complete response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) session: Option<String>,
    /// Whether the body is an SSE stream.
    pub(super) events: bool,
    /// Whether the server closes the connection after it.
    pub(super) closes: bool,
    pub(super) body: Vec<u8>,
}

/// State of the parser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Head,
    /// The remaining bytes of the body.
    Rest(usize),
    ChunkSize,
    /// The bytes of a chunk and a line end.
    Chunk(usize),
    /// Trailer lines up to an empty one.
    Trailers,
    Whole,
}

/// Buffer of unparsed bytes.
#[derive(Debug, Default)]
pub(super) struct Reader {
    held: Vec<u8>,
    at: usize,
    stage: Stage,
    response: Response,
}

impl Reader {
    /// Appends received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.at);
        self.at = 0;
        self.held.extend_from_slice(bytes);
    }

    /// Returns the next response, if it is complete.
    pub(super) fn next(&mut self) -> Result<Option<Response>, String> {
        while self.stage != Stage::Whole {
            let Some(stage) = self.step()? else { return Ok(None) };
            self.stage = stage;
        }
        self.stage = Stage::Head;
        Ok(Some(std::mem::take(&mut self.response)))
    }

    /// Advances the state; `None` if bytes are missing.
    fn step(&mut self) -> Result<Option<Stage>, String> {
        Ok(match self.stage {
            Stage::Head => match self.until(b"\r\n\r\n") {
                Some(head) => Some(self.head(&head)?),
                None => None,
            },
            Stage::Rest(length) => self.take(length).then_some(Stage::Whole),
            Stage::ChunkSize => match self.until(b"\r\n") {
                Some(line) => Some(chunk(&line)?),
                None => None,
            },
            Stage::Chunk(length) if self.held.len() < self.at + length + 2 => None,
            Stage::Chunk(length) => {
                self.take(length);
                let end = self.until(b"\r\n");
                if end.is_none_or(|between| !between.is_empty()) {
                    return Err("a chunk is longer than it says".to_owned());
                }
                Some(Stage::ChunkSize)
            }
            Stage::Trailers => match self.until(b"\r\n") {
                Some(line) if line.is_empty() => Some(Stage::Whole),
                Some(_) => Some(Stage::Trailers),
                None => None,
            },
            Stage::Whole => Some(Stage::Whole),
        })
    }

    /// Moves bytes into the body, if they have arrived.
    fn take(&mut self, length: usize) -> bool {
        let Some(bytes) = self.held.get(self.at..self.at + length) else { return false };
        self.response.body.extend_from_slice(bytes);
        self.at += length;
        true
    }

    /// Consumes the bytes up to a terminator, and the terminator.
    fn until(&mut self, end: &[u8]) -> Option<String> {
        let rest = &self.held[self.at..];
        let length = rest.windows(end.len()).position(|window| window == end)?;
        let found = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length + end.len();
        Some(found)
    }

    fn head(&mut self, head: &str) -> Result<Stage, String> {
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
        self.response.status = status.ok_or_else(|| format!("not a response: {head:?}"))?;
        let mut framing = None;
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(|| format!("not a header: {line:?}"))?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    let length = value.parse().map_err(|_| format!("not a length: {value:?}"))?;
                    framing = Some(Stage::Rest(length));
                }
                "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => {
                    framing = Some(Stage::ChunkSize);
                }
                "content-type" => self.response.events = value.starts_with("text/event-stream"),
                "connection" => self.response.closes = value.eq_ignore_ascii_case("close"),
                "mcp-session-id" => self.response.session = Some(value.to_owned()),
                _ => {}
            }
        }
        if matches!(self.response.status, 204 | 304) {
            return Ok(Stage::Whole);
        }
        framing.ok_or_else(|| "a body without an end".to_owned())
    }
}

/// Parses a chunk size line: the last chunk has size zero.
fn chunk(line: &str) -> Result<Stage, String> {
    let digits = line.split(';').next().unwrap_or_default().trim();
    match usize::from_str_radix(digits, 16) {
        Ok(0) => Ok(Stage::Trailers),
        Ok(length) => Ok(Stage::Chunk(length)),
        Err(_) => Err(format!("not the length of a chunk: {line:?}")),
    }
}

/// Returns the data of every event in a complete stream.
pub(super) fn events(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = body.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| line.strip_suffix(b"\r").unwrap_or(line).strip_prefix(b"data:"))
        .map(<[u8]>::trim_ascii_start)
        // The priming event has no data.
        .filter(|data| !data.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 5\r\n\r\nhello";
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
        Mcp-Session-Id: abc\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n\r\n\r\n world\r\n0\r\nt: x\r\n\r\n";

    /// Parses the bytes in chunks of every size.
    fn read(bytes: &[u8], check: impl Fn(&[Response])) {
        for size in 1..=bytes.len() {
            let mut reader = Reader::default();
            let mut responses = Vec::new();
            for piece in bytes.chunks(size) {
                reader.push(piece);
                while let Some(response) = reader.next().unwrap() {
                    responses.push(response);
                }
            }
            check(&responses);
            assert_eq!(reader.at, reader.held.len(), "nothing is left in pieces of {size}");
        }
    }

    #[test]
    fn bodies_with_a_length_and_in_chunks_are_read_however_they_come() {
        read(&[PLAIN, CHUNKED, PLAIN].concat(), |responses| {
            let [first, second, third] = responses else { panic!("{} responses", responses.len()) };
            assert_eq!((first.status, first.body.as_slice(), first.events), (200, &b"hello"[..], false));
            assert_eq!(second.body, b"hello\r\n\r\n world");
            assert_eq!((second.session.as_deref(), second.events), (Some("abc"), true));
            assert_eq!(third, first);
        });
    }

    #[test]
    fn a_response_without_a_body_ends_with_its_head() {
        read(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", |responses| {
            let [only] = responses else { panic!("{} responses", responses.len()) };
            assert_eq!((only.status, only.closes, only.body.len()), (202, true, 0));
        });
        read(b"HTTP/1.1 204 No Content\r\n\r\n", |responses| assert_eq!(responses.len(), 1));
    }

    #[test]
    fn what_is_not_a_response_is_refused() {
        for bytes in [
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nxyz\r\n",
        ] {
            let mut reader = Reader::default();
            reader.push(bytes.as_bytes());
            assert!(reader.next().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn events_are_their_data_whatever_else_they_say() {
        let body =
            b"id: 1\ndata: \n\nevent: message\r\ndata: {\"a\":1}\r\n\r\n: comment\n\ndata:{\"b\":2}\n\n";
        let found: Vec<&[u8]> = events(body).collect();
        assert_eq!(found, [&b"{\"a\":1}"[..], b"{\"b\":2}"]);
    }
}
