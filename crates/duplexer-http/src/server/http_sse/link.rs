//! A stream from its beginning to its end, and all that are open.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_core::dispatch::{DispatchOptions, Peer};
use duplexer_core::transport::Incoming;
use duplexer_server::driver::StreamServer;
use duplexer_server::{Caller, Principal, RunningServer};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::unknown_session;
use super::wire::{Reader, Telling, Wire, wire};
use crate::server::body::ResponseBody;
use crate::server::door::Visit;
use crate::server::hub::{Hub, lock, shrink};
use crate::server::reply::{self, Refusal, Reply};
use crate::server::session::{Place, Sessions, caller, random};
use crate::server::sse;
use crate::session::PrincipalKey;

/// How long a message may wait for those before it to be taken in.
const ROOM: Duration = Duration::from_secs(10);

/// The way into a stream, for whoever knows its name.
pub(super) struct Link {
    messages: mpsc::Sender<Incoming>,
    principal: Option<PrincipalKey>,
}

impl Link {
    /// Hands a message over to the stream.
    pub(super) async fn deliver(&self, hub: &Hub, incoming: Incoming) -> Result<(), Refusal> {
        let full = || reply::busy().into();
        tokio::select! {
            biased;
            sent = timeout(ROOM, self.messages.send(incoming)) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(unknown_session()),
                Err(_) => Err(full()),
            },
            () = hub.closing.raised() => Err(full()),
        }
    }
}

/// All streams that take messages.
#[derive(Default)]
pub(in crate::server) struct Links(Mutex<HashMap<u128, Arc<Link>>>);

impl Links {
    /// The stream of this name, if it is this principal's.
    pub(super) fn find(hub: &Hub, id: u128, principal: Option<&Principal>) -> Option<Arc<Link>> {
        let link = lock(&hub.links.0).get(&id).cloned()?;
        PrincipalKey::admits(link.principal.as_ref(), principal).then_some(link)
    }
}

/// Opens a stream. What serves it outlives the request, and ends when nobody reads the response.
pub(super) fn open(visit: Visit) -> Result<Reply, Refusal> {
    let Visit { admitted, running, caller: Caller { principal, .. }, .. } = visit;
    let hub = Arc::clone(admitted.hub());
    let place = Sessions::reserve(&hub).ok_or_else(|| reply::too_many_sessions(None))?;
    let id = random().ok_or_else(reply::broken)?;
    let name: Arc<str> = format!("{id:032x}").into();
    let (wire, messages, pieces) = wire();
    let link = Link { messages, principal: principal.as_deref().map(PrincipalKey::of) };
    lock(&hub.links.0).insert(id, Arc::new(link));
    let reader = Reader::new();
    let open = Open { hub: Arc::clone(&hub), id, reader: Arc::clone(&reader), _place: place };
    hub.see_to(open.serve(running, wire, caller(&name, principal)));
    let opening = sse::endpoint(&hub.config.http_sse.endpoint(&name));
    Ok(reply::events(ResponseBody::told(Telling::new(reader, opening, pieces, admitted))))
}

/// A stream that is being served; dropped, nobody finds it any more.
struct Open {
    hub: Arc<Hub>,
    id: u128,
    reader: Arc<Reader>,
    _place: Place,
}

impl Open {
    async fn serve(self, running: RunningServer, wire: Wire, caller: Caller) {
        let mut options = DispatchOptions::default();
        options.hook.clone_from(&self.hub.config.sessions.hook);
        options.limits.drain = self.hub.config.timing.drain;
        let (stream, peer) = StreamServer::new(&running, wire, options);
        let mut serving = pin!(stream.with_caller(caller).run());
        let ended = tokio::select! {
            ended = serving.as_mut() => ended,
            () = self.end(&peer) => serving.await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a stream of events broke");
        }
    }

    /// Ends the stream: in order with the service, and at once when nobody reads it or the service has no more time.
    async fn end(&self, peer: &Peer) {
        let over = async {
            tokio::select! {
                () = self.reader.gone.raised() => {}
                () = self.hub.cut.raised() => {}
            }
        };
        let mut over = pin!(over);
        tokio::select! {
            biased;
            () = over.as_mut() => {}
            () = self.hub.closing.raised() => {
                // Nobody can post any more; what was accepted is read and answered before the stream ends.
                self.unlist();
                over.await;
            }
        }
        peer.stop();
        peer.closing().await;
        // There is nobody to wait for.
        peer.stop();
    }

    fn unlist(&self) {
        let mut links = lock(&self.hub.links.0);
        links.remove(&self.id);
        shrink(&mut links);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.unlist();
    }
}
