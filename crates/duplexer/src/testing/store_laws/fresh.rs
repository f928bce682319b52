//! Values that no other law uses, and short forms of the operations.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use bytes::Bytes;
use duplexer_core::run::RunId;
use duplexer_server::Principal;

use super::{NodeStores, Outcome, Reason, StoresUnderTest};
use crate::http::{
    Admission, Admitted, Appended, Batch, Created, EventKind, NewRequest, Numbering, Page, PrincipalKey,
    Revision, SessionRecord, StoredEvent, StreamId, StreamKey,
};
use crate::types::jsonrpc::RequestId;

/// Returns random bits.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// Two nodes, and the id of a session that does not exist yet.
pub(super) struct Scene {
    pub(super) a: NodeStores,
    pub(super) b: NodeStores,
    pub(super) session: Arc<str>,
}

impl Scene {
    pub(super) async fn new(stores: &dyn StoresUnderTest) -> Result<Self, Reason> {
        let (a, b) = (stores.node().await?, stores.node().await?);
        Ok(Self { a, b, session: format!("law-{:016x}{:016x}", random(), random()).into() })
    }

    /// Creates the session, which belongs to no principal.
    pub(super) async fn with_session(stores: &dyn StoresUnderTest) -> Result<Self, Reason> {
        let scene = Self::new(stores).await?;
        let created = scene.a.shared.sessions.create(&scene.session, &record(None)?).await?;
        super::ensure_eq!(created, Created::New, "the creation of a session");
        Ok(scene)
    }

    /// Creates the session, and the stream of a request that runs at the first node.
    pub(super) async fn with_stream(stores: &dyn StoresUnderTest) -> Result<(Self, StreamKey), Reason> {
        let scene = Self::with_session(stores).await?;
        let key = scene.request(&scene.a, &id(1)).await?;
        Ok((scene, key))
    }

    pub(super) fn key(&self, stream: StreamId) -> StreamKey {
        StreamKey::new(Arc::clone(&self.session), stream)
    }

    /// Has a node admit a request, and returns its stream.
    pub(super) async fn request(&self, node: &NodeStores, request: &RequestId) -> Result<StreamKey, Reason> {
        let stream = StreamId(u128::from(random()));
        let admitted = self.admit(node, None, request, Some(stream)).await?;
        super::ensure!(is_admitted(&admitted), "a request must be admitted, and is not: {admitted:?}");
        Ok(self.key(stream))
    }

    pub(super) async fn admit(
        &self,
        node: &NodeStores,
        principal: Option<&PrincipalKey>,
        id: &RequestId,
        stream: Option<StreamId>,
    ) -> Result<Admitted, Reason> {
        let run = node.shared.nodes.run();
        let admission = Admission::new(principal, None).request(NewRequest { id, run, stream });
        Ok(node.shared.sessions.admit(&self.session, admission).await?)
    }

    /// Returns the record and its revision, or `None` if there is no such session.
    pub(super) async fn record(
        &self,
        node: &NodeStores,
    ) -> Result<Option<(SessionRecord, Revision)>, Reason> {
        match node.shared.sessions.admit(&self.session, Admission::new(None, None)).await? {
            Admitted::Record(record, revision) => Ok(Some((*record, revision))),
            Admitted::Unknown => Ok(None),
            other => {
                Err(Reason(format!("a node without a record must get it or hear `Unknown`, not {other:?}")))
            }
        }
    }
}

pub(super) fn is_admitted(admitted: &Admitted) -> bool {
    matches!(admitted, Admitted::Current | Admitted::Record(..))
}

pub(super) fn id(number: i64) -> RequestId {
    RequestId::from(number)
}

pub(super) fn principal(name: &str) -> PrincipalKey {
    PrincipalKey::of(&Principal::new(name))
}

/// Returns the record of a session whose client has confirmed the handshake.
pub(super) fn record(principal: Option<PrincipalKey>) -> Result<SessionRecord, Reason> {
    let state = r#"{"version":"2025-11-25","initialize":null,"initialized":true,"log_level":"info","subscriptions":[]}"#;
    let connection =
        serde_json::from_str(state).map_err(|error| Reason(format!("a snapshot cannot be read: {error}")))?;
    Ok(SessionRecord::new(connection, principal))
}

pub(super) fn notes(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<StoredEvent> {
    texts.into_iter().map(|text| event(EventKind::Notification, text)).collect()
}

pub(super) fn event(kind: EventKind, text: impl Into<String>) -> StoredEvent {
    StoredEvent::new(Bytes::from(text.into()), kind)
}

/// Appends events that their writer numbers.
pub(super) async fn append(
    node: &NodeStores,
    key: &StreamKey,
    writer: RunId,
    from: u64,
    events: &[StoredEvent],
) -> Result<Appended, Reason> {
    Ok(node.shared.events.append(key, Batch::new(writer, Numbering::From(from), events)).await?)
}

/// Appends events that must be stored, and returns the number of the last one.
pub(super) async fn store(
    node: &NodeStores,
    key: &StreamKey,
    from: u64,
    events: &[StoredEvent],
) -> Result<u64, Reason> {
    match append(node, key, node.shared.nodes.run(), from, events).await? {
        Appended::UpTo { last, .. } => Ok(last),
        other => Err(Reason(format!("a batch of the writer must be stored, and is not: {other:?}"))),
    }
}

/// Reads a page of a stream that exists.
pub(super) async fn page(
    node: &NodeStores,
    key: &StreamKey,
    after: u64,
    at_most: usize,
) -> Result<Page, Reason> {
    let page = node.shared.events.read(key, after, at_most).await?;
    page.ok_or_else(|| Reason("a stream that exists is unknown".to_owned()))
}

pub(super) fn texts(page: &Page) -> Vec<String> {
    page.events.iter().map(|event| String::from_utf8_lossy(&event.data).into_owned()).collect()
}

/// Checks what a stream holds after a number.
pub(super) async fn holds(node: &NodeStores, key: &StreamKey, after: u64, expected: &[&str]) -> Outcome {
    let page = page(node, key, after, 1000).await?;
    super::ensure_eq!(texts(&page), expected, "the events after number {after}");
    Ok(())
}
