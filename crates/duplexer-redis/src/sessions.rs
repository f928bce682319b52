//! Sessions and their requests in flight.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_http::{
    Admission, Admitted, Change, Created, MAX_REQUESTS_IN_FLIGHT, NewRequest, Placement, PrincipalKey,
    Revision, SessionDigest, SessionRecord, SessionStore, StreamId,
};
use duplexer_server::ConnectionSnapshot;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::RequestId;
use serde::Serialize;

use crate::keys::{LAYOUT, SessionKeys};
use crate::link::Node;
use crate::scripts::{self, ScriptCall};
use crate::value::{self, later_layout, millis, unreadable};

/// Prefix of the fields that hold one subscription each, so that nodes change them without losing another's.
const SUBSCRIPTION: &str = "s:";

/// Sessions in the store: a hash for the record and one for the requests in flight.
#[derive(Clone, Debug)]
pub(crate) struct Sessions(pub(crate) Arc<Node>);

impl SessionStore for Sessions {
    fn create<'a>(
        &'a self,
        id: &'a str,
        record: &'a SessionRecord,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move {
            let keys = self.0.keys.session(id);
            let fields = fields(record)?.into_iter().map(|field| self.stored(id, field));
            let fields = fields.collect::<Result<Vec<_>, _>>()?;
            let mut call = scripts::CREATE.call([keys.record(), keys.deleted()]);
            call.arg(self.expiry()).arg(digest(&fields)?);
            for (field, value) in &fields {
                call.arg(field).arg(value);
            }
            let made: bool = self.0.connection.run(&call).await?;
            Ok(if made { Created::New } else { Created::Exists })
        })
    }

    fn admit<'a>(
        &'a self,
        id: &'a str,
        admission: Admission<'a>,
    ) -> BoxFuture<'a, Result<Admitted, StoreError>> {
        Box::pin(async move {
            let admitted = self.try_admit(id, &admission).await?;
            if !matches!(admitted, Admitted::InFlight | Admitted::TooMany) || !self.prune(id).await? {
                return Ok(admitted);
            }
            self.try_admit(id, &admission).await
        })
    }

    fn update<'a>(
        &'a self,
        id: &'a str,
        changes: &'a [Change],
    ) -> BoxFuture<'a, Result<Option<Revision>, StoreError>> {
        Box::pin(async move {
            let mut call = scripts::UPDATE.call([self.0.keys.session(id).record()]);
            call.arg(LAYOUT).arg(self.expiry());
            for change in changes {
                let (field, value) = self.stored(id, assignment(change)?)?;
                call.arg(field).arg(value);
            }
            let (outcome, mut rest) = value::outcome(self.0.connection.run(&call).await?)?;
            match outcome.as_str() {
                "unknown" => Ok(None),
                "updated" => Ok(Some(Revision(value::next(&mut rest)?))),
                _ => Err(later_layout(&value::next::<String>(&mut rest)?)),
            }
        })
    }

    fn locate<'a>(
        &'a self,
        id: &'a str,
        request: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<Placement>, StoreError>> {
        Box::pin(async move {
            let mut command = redis::cmd("HGET");
            command.arg(self.0.keys.session(id).in_flight().to_string()).arg(value::json(request)?);
            let placement: Option<String> = self.0.connection.query(&command).await?;
            placement.map(|text| read_placement(&text)).transpose()
        })
    }

    fn release<'a>(
        &'a self,
        id: &'a str,
        request: &'a RequestId,
        placement: Placement,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut call = scripts::RELEASE.call([self.0.keys.session(id).in_flight()]);
            call.arg(value::json(request)?).text(StoredPlacement(placement));
            self.0.connection.run::<()>(&call).await
        })
    }

    fn touch<'a>(&'a self, ids: &'a [Arc<str>]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            for id in ids {
                let keys = self.0.keys.session(id);
                let mut call = scripts::TOUCH.call([keys.record(), keys.in_flight(), keys.streams()]);
                call.arg(self.expiry()).arg(keys.base());
                self.0.connection.run::<()>(&call).await?;
            }
            Ok(())
        })
    }

    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Vec<Placement>, StoreError>> {
        Box::pin(async move {
            let keys = self.0.keys.session(id);
            let session = [keys.record(), keys.in_flight(), keys.streams(), keys.deleted()];
            let mut call = scripts::DELETE.call(session);
            call.arg(millis(self.0.settings.deleted)).arg(keys.base()).text(StreamId::STANDALONE);
            let placements: Vec<String> = self.0.connection.run(&call).await?;
            placements.iter().map(|text| read_placement(text)).collect()
        })
    }
}

/// Outcomes of messages for sessions in metrics.
pub(crate) const OUTCOMES: [&str; 4] = ["admitted", "unknown", "in_flight", "too_many"];

impl Sessions {
    async fn try_admit(&self, id: &str, admission: &Admission<'_>) -> Result<Admitted, StoreError> {
        let keys = self.0.keys.session(id);
        let call = self.admission(&keys, admission)?;
        let (outcome, mut rest) = value::outcome(self.0.connection.run(&call).await?)?;
        let admitted = match outcome.as_str() {
            "unknown" => return Ok(self.refused("unknown", Admitted::Unknown)),
            "in_flight" => return Ok(self.refused("in_flight", Admitted::InFlight)),
            "too_many" => return Ok(self.refused("too_many", Admitted::TooMany)),
            "current" => Admitted::Current,
            "record" => {
                let fields = self.readable(id, value::next(&mut rest)?)?;
                let (record, revision) = read_record(fields, admission.principal)?;
                Admitted::Record(Box::new(record), revision)
            }
            _ => return Err(later_layout(&value::next::<String>(&mut rest)?)),
        };
        self.0.counters.sessions_admitted.increment();
        self.0.counters.sessions_entered.increment("admitted");
        Ok(admitted)
    }

    fn refused(&self, outcome: &'static str, admitted: Admitted) -> Admitted {
        self.0.counters.sessions_entered.increment(outcome);
        admitted
    }

    fn admission(&self, keys: &SessionKeys, admission: &Admission<'_>) -> Result<ScriptCall, StoreError> {
        let stream = admission.request.and_then(|request| request.stream);
        let state = keys.stream(stream.unwrap_or(StreamId::STANDALONE));
        let mut call = scripts::ADMIT.call([keys.record(), keys.in_flight(), state, keys.streams()]);
        call.arg(LAYOUT).arg(principal_digest(admission.principal)?);
        call.text_or_empty(admission.known.map(|known| known.0)).arg(self.expiry());
        match admission.request {
            Some(NewRequest { id, run, stream }) => {
                call.arg(value::json(id)?).text(StoredPlacement(Placement { run, stream }));
                call.arg(MAX_REQUESTS_IN_FLIGHT).text_or_empty(stream).text(run);
            }
            None => {
                call.arg("").arg("").arg(0).arg("").arg("");
            }
        }
        call.arg(self.0.settings.events.session_streams).arg(keys.base()).arg(now());
        Ok(call)
    }

    /// Removes the requests of runs that are gone. Returns whether there were any.
    async fn prune(&self, id: &str) -> Result<bool, StoreError> {
        let in_flight = self.0.keys.session(id).in_flight().to_string();
        let requests: HashMap<String, String> =
            self.0.connection.query(redis::cmd("HGETALL").arg(&in_flight)).await?;
        let mut runs = HashSet::new();
        for placement in requests.values() {
            runs.insert(read_placement(placement)?.run);
        }
        let mut gone = HashSet::new();
        for run in runs {
            if !self.0.is_alive(run).await? {
                gone.insert(run);
            }
        }
        for (request, placement) in &requests {
            if gone.contains(&read_placement(placement)?.run) {
                let mut call = scripts::RELEASE.call([&in_flight]);
                call.arg(request).arg(placement);
                self.0.connection.run::<()>(&call).await?;
            }
        }
        Ok(!gone.is_empty())
    }

    fn expiry(&self) -> u64 {
        millis(self.0.settings.session_expiry)
    }

    /// Returns a field as it is stored. Scripts compare layout, revision and principal, so these are not sealed.
    ///
    /// The name of a sealed subscription is a digest of its URI and of the id of the session, which the store does not know.
    fn stored(&self, id: &str, (field, value): (String, String)) -> Result<(String, Vec<u8>), StoreError> {
        let Some(seal) = self.0.seal.as_ref().filter(|_| is_sealed(&field)) else {
            return Ok((field, value.into_bytes()));
        };
        let scope = SessionDigest::of(id).to_string();
        let Some(uri) = field.strip_prefix(SUBSCRIPTION) else {
            let sealed = seal.seal(&scope, &field, value.as_bytes())?;
            return Ok((field, sealed));
        };
        let name = format!("{SUBSCRIPTION}{}", SessionDigest::of(&format!("{id} {uri}")));
        // An empty value removes the field.
        let sealed = if value.is_empty() { Vec::new() } else { seal.seal(&scope, &name, uri.as_bytes())? };
        Ok((name, sealed))
    }

    /// Returns fields as they were before they were stored.
    fn readable(
        &self,
        id: &str,
        fields: HashMap<String, Vec<u8>>,
    ) -> Result<HashMap<String, String>, StoreError> {
        let scope = SessionDigest::of(id).to_string();
        let read = |(field, value): (String, Vec<u8>)| {
            let Some(seal) = self.0.seal.as_ref().filter(|_| is_sealed(&field)) else {
                // A field of a later version can be anything.
                return Ok((field, String::from_utf8_lossy(&value).into_owned()));
            };
            let value = String::from_utf8(seal.open(&scope, &field, &value)?).map_err(unreadable)?;
            let is_subscription = field.starts_with(SUBSCRIPTION);
            Ok(if is_subscription { (format!("{SUBSCRIPTION}{value}"), value) } else { (field, value) })
        };
        fields.into_iter().map(read).collect()
    }
}

/// Returns whether a field is sealed, if anything is.
fn is_sealed(field: &str) -> bool {
    matches!(field, "ver" | "level" | "init" | "ready") || field.starts_with(SUBSCRIPTION)
}

/// Returns the time of this node, in milliseconds.
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, millis)
}

/// Returns the fields of a record. The principal is stored as a digest.
fn fields(record: &SessionRecord) -> Result<Vec<(String, String)>, StoreError> {
    let connection = &record.connection;
    let mut fields = vec![
        ("v".to_owned(), LAYOUT.to_owned()),
        ("rev".to_owned(), "1".to_owned()),
        ("who".to_owned(), principal_digest(record.principal.as_ref())?),
        ("ver".to_owned(), connection.version.clone()),
        ("level".to_owned(), value::json(&connection.log_level)?),
    ];
    if let Some(params) = &connection.initialize {
        fields.push(("init".to_owned(), params.as_str().to_owned()));
    }
    if let Some(position) = record.opened_at {
        fields.push(("at".to_owned(), position.to_string()));
    }
    if connection.initialized {
        fields.push(("ready".to_owned(), "1".to_owned()));
    }
    let subscriptions = connection.subscriptions.iter();
    fields.extend(subscriptions.map(|uri| (format!("{SUBSCRIPTION}{uri}"), "1".to_owned())));
    Ok(fields)
}

/// Reads a record. Fields of a later version are ignored, and stay in the store.
fn read_record(
    mut fields: HashMap<String, String>,
    principal: Option<&PrincipalKey>,
) -> Result<(SessionRecord, Revision), StoreError> {
    let mut field =
        |name: &'static str| fields.remove(name).ok_or_else(|| unreadable(format!("no field `{name}`")));
    let (version, level, revision) = (field("ver")?, field("level")?, field("rev")?);
    let initialize = fields.remove("init").map(|text| Json::parse(&text)).transpose().map_err(unreadable)?;
    let mut subscriptions: Vec<String> =
        fields.keys().filter_map(|field| field.strip_prefix(SUBSCRIPTION)).map(str::to_owned).collect();
    subscriptions.sort_unstable();
    let mut connection = ConnectionSnapshot::new(version);
    connection.initialize = initialize;
    connection.initialized = fields.contains_key("ready");
    connection.log_level = serde_json::from_str(&level).map_err(unreadable)?;
    connection.subscriptions = subscriptions;
    let revision = Revision(revision.parse().map_err(unreadable)?);
    let opened_at = value::position(fields.get("at").map_or("", String::as_str))?;
    Ok((SessionRecord::new(connection, principal.cloned()).opened_at(opened_at), revision))
}

/// Returns the field and the value of a change. An empty value removes the field.
fn assignment(change: &Change) -> Result<(String, String), StoreError> {
    Ok(match change {
        Change::Initialized => ("ready".to_owned(), "1".to_owned()),
        Change::LogLevel(level) => ("level".to_owned(), value::json(level)?),
        Change::Subscribed(uri) => (format!("{SUBSCRIPTION}{uri}"), "1".to_owned()),
        Change::Unsubscribed(uri) => (format!("{SUBSCRIPTION}{uri}"), String::new()),
        other => return Err(StoreError::Failed(format!("unknown change {other:?}").into())),
    })
}

/// Returns the digest of a principal, or an empty text for none.
fn principal_digest(principal: Option<&PrincipalKey>) -> Result<String, StoreError> {
    principal.map_or_else(|| Ok(String::new()), digest)
}

/// Returns the digest of a value, made like that of a session id.
fn digest<T: Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    Ok(SessionDigest::of(&value::json(value)?).to_string())
}

/// A placement as it is stored.
struct StoredPlacement(Placement);

impl Display for StoredPlacement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Placement { run, stream: Some(stream) } => write!(f, "{run} {stream}"),
            Placement { run, stream: None } => write!(f, "{run} -"),
        }
    }
}

fn read_placement(text: &str) -> Result<Placement, StoreError> {
    let (run, stream) = text.split_once(' ').ok_or_else(|| unreadable("a placement has no stream"))?;
    let run = run.parse().map_err(unreadable)?;
    let stream = match stream {
        "-" => None,
        digits => Some(StreamId(u128::from_str_radix(digits, 16).map_err(unreadable)?)),
    };
    Ok(Placement { run, stream })
}
