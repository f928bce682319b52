//! JSON-RPC frames: one pass over the text finds kind, id, method and raw params; one pass writes.
//!
//! The only knowledge of MCP is that `params` can hold a `_meta`, whose position is recorded. Member names are compared
//! exactly, duplicate members are rejected, nesting is bounded.

mod decode;
mod id;
mod write;

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use crate::error::{ErrorCode, ErrorObject};
use crate::json::Occurrence;
use crate::json::scan::{self, NotJson, Scanner};
use crate::meta::MetaCache;

pub use crate::json::scan::MAX_DEPTH;
pub use decode::{decode, first_text, only_text};
pub use id::RequestId;
pub use write::{Body, write_failure, write_notification, write_request, write_success};

/// Frame that borrows from the text it was read from.
///
/// ```
/// use duplexer_types::jsonrpc::{RawFrame, read};
///
/// let RawFrame::Request { call, .. } = read(r#"{"jsonrpc":"2.0","id":1,"method":"com.example/search","params":{"word":"tea"}}"#)? else {
///     panic!("not a request");
/// };
/// assert_eq!(call.params, Some(r#"{"word":"tea"}"#));
/// # Ok::<_, duplexer_types::jsonrpc::Malformed>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawFrame<'a> {
    /// Request: expects a response with its id.
    Request {
        /// Id of the request.
        id: RequestId,
        /// Method and params.
        call: RawCall<'a>,
    },
    /// Notification: expects no response.
    Notification(RawCall<'a>),
    /// Success response to an own request.
    Success {
        /// Id of the request.
        id: RequestId,
        /// JSON text of the result.
        result: &'a str,
    },
    /// Error response to an own request; without id, to a message that the peer could not read.
    Failure {
        /// Id of the request.
        id: Option<RequestId>,
        /// JSON text of the error object.
        error: &'a str,
    },
    /// JSON array of messages; [`batch`] splits it.
    Batch(&'a str),
}

/// Method and params of a request or notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawCall<'a> {
    /// The method.
    pub method: Cow<'a, str>,
    /// JSON text of an object; `None` if absent or null.
    pub params: Option<&'a str>,
    /// JSON text of `params._meta`, of any type.
    pub meta: Option<&'a str>,
    /// JSON text of the longest other member of the params. Decoding skips it without a second scan.
    pub longest: Option<&'a str>,
}

/// Why a text is not a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Not JSON.
    NotJson,
    /// JSON, but not a frame. It gets an error response, with the id if that is readable.
    Invalid {
        /// Id of the request, if it is readable.
        id: Option<RequestId>,
        /// What is invalid.
        reason: &'static str,
    },
    /// An invalid response or notification, which gets no response.
    Unanswerable {
        /// What is invalid.
        reason: &'static str,
    },
}

impl Malformed {
    /// Returns the error response, if there is one, with its id.
    pub fn answer(&self) -> Option<(Option<&RequestId>, ErrorObject)> {
        match self {
            Self::NotJson => Some((None, ErrorObject::new(ErrorCode::PARSE_ERROR, "Parse error"))),
            Self::Invalid { id, reason } => {
                let message = format!("Invalid request: {reason}");
                Some((id.as_ref(), ErrorObject::new(ErrorCode::INVALID_REQUEST, message)))
            }
            Self::Unanswerable { .. } => None,
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotJson => "not JSON",
            Self::Invalid { reason, .. } | Self::Unanswerable { reason } => reason,
        })
    }
}

impl std::error::Error for Malformed {}

/// Reads one frame.
///
/// # Errors
/// Fails if `text` is not JSON or not a frame.
pub fn read(text: &str) -> Result<RawFrame<'_>, Malformed> {
    let mut scanner = Scanner::new(text);
    match scanner.peek() {
        Some(b'{') => {
            let members = FrameMembers::scan(&mut scanner).map_err(|NotJson| Malformed::NotJson)?;
            members.frame(scanner.too_deep())
        }
        start => {
            scanner.value(0).and_then(|_| scanner.end()).map_err(|NotJson| Malformed::NotJson)?;
            match start {
                Some(b'[') => Ok(RawFrame::Batch(text)),
                _ => Err(Malformed::Invalid { id: None, reason: "a message is an object" }),
            }
        }
    }
}

/// Splits a batch into the texts of its messages.
///
/// # Errors
/// Fails if `text` is not a JSON array, or if it is empty.
pub fn batch(text: &str) -> Result<Vec<&str>, Malformed> {
    let mut scanner = Scanner::new(text);
    let mut items = Vec::new();
    let read = scanner.items(|scanner| {
        items.push(scanner.value(1)?);
        Ok(())
    });
    match read.and_then(|()| scanner.end()) {
        Ok(()) if items.is_empty() => {
            Err(Malformed::Invalid { id: None, reason: "a batch holds at least one message" })
        }
        Ok(()) => Ok(items),
        Err(NotJson) => Err(Malformed::NotJson),
    }
}

/// Finds `_meta` in the text of a params object without decoding the rest.
///
/// For params that were not read by [`read`], such as those that a middleware has rewritten.
pub fn find_meta(params: &str) -> Option<&str> {
    let mut landmarks = Landmarks::default();
    params_object(&mut Scanner::new(params), 1, &mut landmarks).ok()?;
    landmarks.meta.one()
}

/// Positions in a params object, recorded during the scan.
#[derive(Clone, Copy, Default)]
struct Landmarks<'a> {
    meta: Occurrence<&'a str>,
    longest: Option<&'a str>,
}

fn params_object<'a>(
    scanner: &mut Scanner<'a>,
    depth: usize,
    landmarks: &mut Landmarks<'a>,
) -> Result<&'a str, NotJson> {
    let start = scanner.position();
    let longest = &mut landmarks.longest;
    let [meta] = scanner.find_with(&["_meta"], |scanner, is_meta| {
        if is_meta {
            return meta_value(scanner, depth + 1);
        }
        let value = scanner.value(depth + 1)?;
        if longest.is_none_or(|longest| longest.len() < value.len()) {
            *longest = Some(value);
        }
        Ok(value)
    })?;
    landmarks.meta = meta;
    Ok(scanner.since(start))
}

thread_local! {
    /// The last `_meta` that was scanned on this thread and is not nested too deeply.
    static SCANNED: RefCell<MetaCache<()>> = const { RefCell::new(MetaCache::new()) };
}

/// Reads the value of `_meta`. The one that was scanned last is not scanned again.
fn meta_value<'a>(scanner: &mut Scanner<'a>, depth: usize) -> Result<&'a str, NotJson> {
    let rest = scanner.rest();
    let known = SCANNED.with_borrow(|cache| cache.prefix(rest)).and_then(|known| scanner.skip(known));
    if let Some(known) = known {
        return Ok(known);
    }
    let value = scanner.value(depth)?;
    // The depth counts from the top of the frame, where every `_meta` is at the same level.
    if !scanner.too_deep() {
        SCANNED.with_borrow_mut(|cache| cache.store(value, ()));
    }
    Ok(value)
}

/// Members of a frame, recorded during the scan.
#[derive(Default)]
struct FrameMembers<'a> {
    version: Occurrence<&'a str>,
    id: Occurrence<&'a str>,
    method: Occurrence<&'a str>,
    params: Occurrence<&'a str>,
    result: Occurrence<&'a str>,
    error: Occurrence<&'a str>,
    landmarks: Landmarks<'a>,
}

impl<'a> FrameMembers<'a> {
    fn scan(scanner: &mut Scanner<'a>) -> Result<Self, NotJson> {
        let mut members = Self::default();
        let mut object = scanner.open_object()?;
        // As most peers begin.
        if scanner.skip_first(&mut object, r#""jsonrpc":"2.0""#) {
            members.version.add(r#""2.0""#);
        }
        while let Some(name) = scanner.next_name(&mut object)? {
            members.take(&name, scanner)?;
        }
        scanner.end()?;
        Ok(members)
    }

    fn take(&mut self, name: &str, scanner: &mut Scanner<'a>) -> Result<(), NotJson> {
        if name == "params" && scanner.peek() == Some(b'{') {
            let params = params_object(scanner, 1, &mut self.landmarks)?;
            self.params.add(params);
            return Ok(());
        }
        let value = scanner.value(1)?;
        match name {
            "jsonrpc" => self.version.add(value),
            "id" => self.id.add(value),
            "method" => self.method.add(value),
            "params" => self.params.add(value),
            "result" => self.result.add(value),
            "error" => self.error.add(value),
            _ => {}
        }
        Ok(())
    }

    fn frame(self, too_deep: bool) -> Result<RawFrame<'a>, Malformed> {
        if self.method.is_present() {
            self.call(too_deep)
        } else if self.result.is_present() || self.error.is_present() {
            self.response(too_deep).map_err(|reason| Malformed::Unanswerable { reason })
        } else {
            let id = self.id.one().and_then(RequestId::read);
            Err(Malformed::Invalid { id, reason: "there is neither a method nor a result" })
        }
    }

    /// Returns a request or notification. An error holds the id if it is readable.
    fn call(self, too_deep: bool) -> Result<RawFrame<'a>, Malformed> {
        let id = self.id.one().and_then(RequestId::read);
        match self.readable_call(too_deep) {
            Ok(call) => match id {
                Some(id) => Ok(RawFrame::Request { id, call }),
                None if self.id.is_present() => {
                    Err(Malformed::Invalid { id: None, reason: "the id is neither a string nor an integer" })
                }
                None => Ok(RawFrame::Notification(call)),
            },
            Err(reason) if self.id.is_present() => Err(Malformed::Invalid { id, reason }),
            Err(reason) => Err(Malformed::Unanswerable { reason }),
        }
    }

    fn readable_call(&self, too_deep: bool) -> Result<RawCall<'a>, &'static str> {
        self.check_envelope(too_deep)?;
        let method = self.method.one().and_then(scan::string).ok_or("the method is not a string")?;
        let params = match self.params.one() {
            None | Some("null") => None,
            Some(params) if params.starts_with('{') => Some(params),
            Some(_) => return Err("params is not an object"),
        };
        let Landmarks { meta, longest } = self.landmarks;
        Ok(RawCall { method, params, meta: meta.one(), longest })
    }

    fn response(self, too_deep: bool) -> Result<RawFrame<'a>, &'static str> {
        self.check_envelope(too_deep)?;
        let id = self.id.one().and_then(RequestId::read);
        match (self.error.one(), self.result.one()) {
            (Some(error), _) => Ok(RawFrame::Failure { id, error }),
            (None, Some(result)) => {
                let id = id.ok_or("a result without a readable id")?;
                Ok(RawFrame::Success { id, result })
            }
            (None, None) => Err("a response without a result"),
        }
    }

    fn check_envelope(&self, too_deep: bool) -> Result<(), &'static str> {
        // References: copying the members would cost more than looking at them.
        let Self { version, id, method, params, result, error, landmarks } = self;
        let all = [version, id, method, params, result, error, &landmarks.meta];
        if all.into_iter().any(Occurrence::is_repeated) {
            return Err("a member stands twice");
        }
        if too_deep {
            return Err("nested too deeply");
        }
        match self.version.one() {
            Some("\"2.0\"") => Ok(()),
            Some(version) if scan::string(version).is_some_and(|version| version == "2.0") => Ok(()),
            _ => Err("jsonrpc is not \"2.0\""),
        }
    }
}

#[cfg(test)]
mod tests;
