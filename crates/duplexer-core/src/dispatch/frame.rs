//! Frames as owned values: what the JSON-RPC dispatcher and HTTP both work on.
//!
//! A frame shares the text it was read from; nothing is copied. Methods and params are opaque here.

use bytestring::ByteString;
use duplexer_types::jsonrpc::{self, Malformed, RawFrame, RequestId};

use super::Message;
use crate::error::CallError;

/// A JSON-RPC frame that owns its parts.
#[derive(Debug)]
pub enum Frame {
    /// A request: the peer expects a response under this id.
    Request(RequestId, Message),
    /// A notification: it is never answered.
    Notification(Message),
    /// The response to one of our requests: the JSON text of its result, or the error.
    Response(RequestId, Result<ByteString, CallError>),
    /// An error response without an id: the peer could not read something we sent.
    ErrorWithoutId,
    /// The text of a JSON array; [`Frame::batch`] parses its items.
    Batch(ByteString),
}

/// Text that is not a frame.
#[derive(Debug)]
pub struct Rejected {
    /// The text as it arrived.
    pub text: ByteString,
    /// Why it is not a frame.
    pub reason: Malformed,
}

impl Frame {
    /// Parses one frame. The frame shares `text`.
    ///
    /// # Errors
    ///
    /// Fails if the frame is not a message of JSON-RPC.
    pub fn parse(text: &ByteString) -> Result<Self, Malformed> {
        Self::parse_owned(text.clone()).map_err(|rejected| rejected.reason)
    }

    /// Parses one frame and takes the text over: sharing a text for the first time would allocate.
    pub(crate) fn parse_owned(text: ByteString) -> Result<Self, Rejected> {
        match Self::locate(&text) {
            Ok(mut frame) => {
                match &mut frame {
                    Self::Request(_, call) | Self::Notification(call) => call.attach(text),
                    Self::Batch(batch) => *batch = text,
                    Self::Response(..) | Self::ErrorWithoutId => {}
                }
                Ok(frame)
            }
            Err(reason) => Err(Rejected { text, reason }),
        }
    }

    /// Parses the items of a batch.
    ///
    /// # Errors
    ///
    /// Fails if the batch is empty or not an array. A single item fails if it is malformed, or a batch itself.
    pub fn batch(
        text: &ByteString,
    ) -> Result<impl ExactSizeIterator<Item = Result<Self, Rejected>> + use<'_>, Malformed> {
        let items = jsonrpc::batch(text)?;
        Ok(items.into_iter().map(|item| match Self::parse_owned(text.slice_ref(item))? {
            Self::Batch(text) => {
                let reason = Malformed::Invalid { id: None, reason: "a batch does not hold batches" };
                Err(Rejected { text, reason })
            }
            frame => Ok(frame),
        }))
    }

    /// Finds the parts of a frame. Calls and batches have no text yet.
    fn locate(text: &ByteString) -> Result<Self, Malformed> {
        Ok(match jsonrpc::read(text)? {
            RawFrame::Request { id, call } => Self::Request(id, Message::locate(text, &call)),
            RawFrame::Notification(call) => Self::Notification(Message::locate(text, &call)),
            RawFrame::Success { id, result } => Self::Response(id, Ok(text.slice_ref(result))),
            RawFrame::Failure { id: Some(id), error } => {
                let error = serde_json::from_str(error).map_or_else(CallError::Unexpected, CallError::Rpc);
                Self::Response(id, Err(error))
            }
            RawFrame::Failure { id: None, .. } => Self::ErrorWithoutId,
            RawFrame::Batch(_) => Self::Batch(ByteString::new()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &'static str) -> Result<Frame, Malformed> {
        Frame::parse(&ByteString::from_static(text))
    }

    #[test]
    fn every_kind_of_frame_is_parsed() {
        let call = |call: &Message| (call.method().to_owned(), call.params().map(ToOwned::to_owned));
        match parse(r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":1}}"#) {
            Ok(Frame::Request(id, request)) => {
                assert_eq!(id, 1_i64.into());
                assert_eq!(call(&request), ("a/b".to_owned(), Some(r#"{"x":1}"#.to_owned())));
            }
            other => panic!("{other:?}"),
        }
        match parse(r#"{"jsonrpc":"2.0","method":"note"}"#) {
            Ok(Frame::Notification(notification)) => {
                assert_eq!(call(&notification), ("note".to_owned(), None));
            }
            other => panic!("{other:?}"),
        }
        match parse(r#"{"jsonrpc":"2.0","id":"x","result":[1]}"#) {
            Ok(Frame::Response(id, Ok(result))) => assert_eq!((id, &*result), ("x".into(), "[1]")),
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","id":2,"error":{"code":5,"message":"no"}}"#),
            Ok(Frame::Response(_, Err(CallError::Rpc(_))))
        ));
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","id":2,"error":"odd"}"#),
            Ok(Frame::Response(_, Err(CallError::Unexpected(_))))
        ));
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","error":{"code":5,"message":"no"}}"#),
            Ok(Frame::ErrorWithoutId)
        ));
        assert!(matches!(parse("[1]"), Ok(Frame::Batch(text)) if text == "[1]"));
        assert_eq!(parse("{").unwrap_err(), Malformed::NotJson);
    }

    #[test]
    fn the_items_of_a_batch_are_frames_but_never_batches() {
        let text = ByteString::from_static(r#"[{"jsonrpc":"2.0","method":"note"},[1],7]"#);
        let items: Vec<_> = Frame::batch(&text).unwrap().collect();
        assert!(matches!(&items[0], Ok(Frame::Notification(call)) if call.method() == "note"));
        let rejected = items[1].as_ref().unwrap_err();
        assert_eq!(
            (&*rejected.text, rejected.reason.to_string()),
            ("[1]", "a batch does not hold batches".into())
        );
        assert_eq!(items[2].as_ref().unwrap_err().text, "7");
        assert!(Frame::batch(&ByteString::from_static("[]")).is_err());
    }
}
