//! Paths of the HTTP+SSE transport.

use std::fmt::Write as _;

/// The two paths, and the prefix under which clients reach them.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct Paths {
    /// Prefix that a router strips before it calls the service.
    root: String,
    ends: Option<Ends>,
}

/// The two paths, percent-encoded.
#[derive(Clone, Debug)]
struct Ends {
    stream: String,
    messages: String,
}

/// One of the two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum End {
    /// The SSE stream.
    Stream,
    /// The endpoint for messages of the client.
    Messages,
}

/// Error of a text that is not a relative path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct InvalidPath(pub(in crate::server) String);

impl Paths {
    pub(in crate::server) fn set(&mut self, stream: &str, messages: &str) -> Result<(), InvalidPath> {
        self.ends = Some(Ends { stream: encoded(stream)?, messages: encoded(messages)? });
        Ok(())
    }

    pub(in crate::server) fn set_root(&mut self, root: &str) -> Result<(), InvalidPath> {
        encoded(root)?.trim_end_matches('/').clone_into(&mut self.root);
        Ok(())
    }

    /// Returns the endpoint at a path, if the transport is served. Trailing slashes are ignored.
    pub(in crate::server) fn end(&self, path: &str) -> Option<End> {
        let ends = self.ends.as_ref()?;
        match trimmed(path) {
            path if path == trimmed(&ends.stream) => Some(End::Stream),
            path if path == trimmed(&ends.messages) => Some(End::Messages),
            _ => None,
        }
    }

    /// Returns a path that two endpoints share. `other` is the path of the streamable service.
    pub(in crate::server) fn clash(&self, other: &str) -> Option<&str> {
        let Ends { stream, messages } = self.ends.as_ref()?;
        let taken = |path: &str| trimmed(path) == trimmed(other);
        [stream, messages]
            .into_iter()
            .find(|path| taken(path))
            .or_else(|| (trimmed(stream) == trimmed(messages)).then_some(messages))
            .map(String::as_str)
    }

    /// Returns the URI to which the client of a session POSTs.
    pub(super) fn endpoint(&self, session: &str) -> String {
        let messages = self.ends.as_ref().map_or("", |ends| ends.messages.as_str());
        format!("{}{messages}?session_id={session}", self.root)
    }
}

fn trimmed(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// Checks that a text is a relative path, and percent-encodes it.
fn encoded(path: &str) -> Result<String, InvalidPath> {
    let first = path.split('/').next().unwrap_or_default();
    if first.contains(':') || path.contains("//") || path.contains(['?', '#']) {
        return Err(InvalidPath(path.to_owned()));
    }
    let mut out = String::with_capacity(path.len() + 1);
    out.push('/');
    for byte in path.strip_prefix('/').unwrap_or(path).bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing into memory cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(stream: &str, messages: &str) -> Paths {
        let mut paths = Paths::default();
        paths.set(stream, messages).unwrap();
        paths
    }

    /// SSE-01: a slash is added; any other text that is not a path is rejected.
    #[test]
    fn an_endpoint_is_a_relative_path() {
        for wrong in [
            "http://x/messages",
            "//x/messages",
            "/a//b",
            "/messages?x=1",
            "/messages#x",
            "mailto:x",
            "x:y/z",
        ] {
            assert_eq!(Paths::default().set("/sse", wrong), Err(InvalidPath(wrong.into())));
            assert_eq!(Paths::default().set(wrong, "/messages"), Err(InvalidPath(wrong.into())));
            assert_eq!(Paths::default().set_root(wrong), Err(InvalidPath(wrong.into())));
        }
        assert_eq!(paths("sse", "messages/").endpoint("0"), "/messages/?session_id=0");
    }

    /// SSE-02: the root comes first, and characters that a URI cannot hold are encoded.
    #[test]
    fn clients_receive_the_whole_path_as_a_uri() {
        let mut paths = paths("/sse", "/our messages/ä%");
        paths.set_root("/api/v1/").unwrap();
        assert_eq!(paths.endpoint("0a"), "/api/v1/our%20messages/%C3%A4%25?session_id=0a");
        assert_eq!(paths.end("/our%20messages/%C3%A4%25"), Some(End::Messages));
    }

    #[test]
    fn a_path_is_one_end_or_none() {
        let paths = paths("/sse", "/messages/");
        assert_eq!(paths.end("/sse"), Some(End::Stream));
        assert_eq!(paths.end("/sse/"), Some(End::Stream));
        assert_eq!(paths.end("/messages"), Some(End::Messages));
        for other in ["/", "/mcp", "/sse/x", "/messages//", "sse"] {
            assert_eq!(paths.end(other), None, "{other}");
        }
        assert_eq!(Paths::default().end("/sse"), None);
    }

    #[test]
    fn two_ends_at_one_path_are_found() {
        assert_eq!(paths("/sse", "/messages").clash("/mcp"), None);
        assert_eq!(paths("/mcp/", "/messages").clash("/mcp"), Some("/mcp/"));
        assert_eq!(paths("/x", "/x/").clash("/mcp"), Some("/x/"));
    }
}
