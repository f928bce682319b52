//! The body that a connection sends: that of the service, or what layers have made of it.

use std::any::Any;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use duplexer_core::error::BoxError;
use http_body::{Body, Frame, SizeHint};

use super::connection_state::InFlightGuard;
use crate::server::body::{ResponseBody, UnsentOwner};

/// Body of a response, after all layers.
pub(super) enum ConnectionBody {
    /// The service's own, or one that a layer made of a text.
    Own(ResponseBody),
    /// One of another type: compressed, for example.
    Other(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>, Option<InFlightGuard>),
}

impl ConnectionBody {
    /// Takes the body of a response that layers have passed.
    pub(super) fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut body = Some(body);
        if let Some(own) = (&mut body as &mut dyn Any).downcast_mut::<Option<ResponseBody>>()
            && let Some(own) = own.take()
        {
            return Self::Own(own);
        }
        match body {
            Some(body) => Self::Other(Box::pin(AnyError(Box::pin(body))), None),
            None => Self::Own(ResponseBody::default()),
        }
    }

    /// Holds `in_flight` until the body has been sent or dropped.
    pub(super) fn until_read(&mut self, in_flight: Option<InFlightGuard>) {
        match self {
            Self::Own(body) => body.until_read(in_flight),
            Self::Other(_, held) => *held = in_flight,
        }
    }

    /// Puts a text under the watch over unread streams, for HTTP/2. A body of another type has no text.
    pub(super) fn watch_text(&mut self, owner: &UnsentOwner) {
        if let Self::Own(body) = self {
            body.watch_text(owner);
        }
    }
}

impl From<ResponseBody> for ConnectionBody {
    fn from(body: ResponseBody) -> Self {
        Self::Own(body)
    }
}

impl Body for ConnectionBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Self::Own(body) => {
                Pin::new(body).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
            Self::Other(body, _) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(body) => body.is_end_stream(),
            Self::Other(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(body) => body.size_hint(),
            Self::Other(body, _) => body.size_hint(),
        }
    }
}

/// A body whose error has no type.
struct AnyError<B>(Pin<Box<B>>);

impl<B: Body<Data = Bytes>> Body for AnyError<B>
where
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
