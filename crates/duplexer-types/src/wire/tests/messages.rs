//! Arbitrary messages of every kind, written for every revision that has them.

use std::cell::Cell;
use std::fmt::Debug;

use arbitrary::{Arbitrary, Unstructured};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::schema::{faults, validator};
use crate::capabilities::{ClientCapabilities, ServerCapabilities};
use crate::elicitation::ElicitParams;
use crate::input::InputRequiredResult;
use crate::json::{Json, JsonObject};
use crate::jsonrpc::RequestId;
use crate::lifecycle::Implementation;
use crate::meta::key;
use crate::methods::{self, Direction, Method, Notification, Request};
use crate::progress::CancelledParams;
use crate::task::{CreateTaskResult, GetTaskResult, Task, TaskStatus};
use crate::version::{Era, ProtocolVersion as V};
use crate::wire::{
    CacheScope, ForRevision, Freshness, ResultBody, ResultMeta, Shape, Wire, WireObject, write_params,
    write_result,
};

/// Bounds of a model under test.
trait Model: for<'a> Arbitrary<'a> + Serialize + DeserializeOwned + PartialEq + Debug {}
impl<T: for<'a> Arbitrary<'a> + Serialize + DeserializeOwned + PartialEq + Debug> Model for T {}

/// Runs `test` on arbitrary values, small ones (of one or two members) as well as large ones.
fn for_all<T: Model>(test: impl Fn(T)) {
    let bytes = prop_oneof![vec(any::<u8>(), 0..32), vec(any::<u8>(), 0..256), vec(any::<u8>(), 0..4096)];
    let config = ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        test(T::arbitrary(&mut Unstructured::new(&bytes)).expect("bytes never run out"));
        Ok(())
    });
    if let Err(fault) = outcome {
        panic!("{fault}");
    }
}

/// Form of a value in a revision.
struct Written<'a> {
    version: V,
    /// Definition of the whole message.
    definition: &'static str,
    /// Builds the message from the text of the value.
    message: &'a dyn Fn(Value) -> Value,
    text: String,
    /// All members of the value, with those that the era adds.
    full: Value,
}

impl Written<'_> {
    /// Validates, reads back, and writes again. Returns whether the revision can express all members.
    fn check<T: Model>(&self, value: &T, write: impl Fn(&T) -> String) -> bool {
        let Self { version, definition, message, text, full } = self;
        let written: Value = serde_json::from_str(text).expect("JSON");
        let found = faults(*version, definition, &message(written.clone()));
        assert!(found.is_empty(), "{version} {definition}: {found:#?}\n{text}");
        let back: T = serde_json::from_str(text).unwrap_or_else(|fault| panic!("{version} {fault}: {text}"));
        assert_eq!(write(&back), *text, "{version} {definition}: shaping twice changes something");
        // The schema, if there is one, decides whether members had to be omitted, not the written text.
        let says_all = match validator(*version, definition) {
            Some(validator) => validator.is_valid(&message(full.clone())),
            None => written == *full,
        };
        if says_all {
            assert_eq!(written, *full, "{version} {definition}: something was lost without need");
            assert_eq!(back, *value, "{version} {definition}\n{text}");
        }
        says_all
    }
}

fn full(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("everything can be written in full")
}

fn params_meta(version: V) -> Option<JsonObject> {
    let envelope = || {
        JsonObject::new()
            .with(key::PROTOCOL_VERSION, version.as_str())
            .with(key::CLIENT_CAPABILITIES, json!({}))
    };
    (version.era() == Era::Envelope).then(envelope)
}

fn versions(method: Method) -> impl Iterator<Item = V> {
    V::ALL.iter().copied().filter(move |version| {
        method.exists(Direction::ClientToServer, *version)
            || method.exists(Direction::ServerToClient, *version)
    })
}

fn params<P: Model + WireObject>(
    method: Method,
    definition: &'static str,
    is_refused: impl Fn(&P, V) -> bool,
) {
    let said_all = Cell::new(0);
    for_all(|params: P| {
        round_trips(&params);
        for version in versions(method) {
            let meta = params_meta(version);
            let write = |params: &P| {
                let mut out = Vec::new();
                write_params(&mut out, params, version, meta.as_ref())
                    .map(|()| String::from_utf8(out).expect("UTF-8"))
            };
            let written = write(&params);
            assert_eq!(written.is_err(), is_refused(&params, version), "{version} {method} {params:?}");
            let Ok(text) = written else { continue };
            let mut full = full(&params);
            if let Some(meta) = &meta {
                full["_meta"] = self::full(meta);
            }
            let message = |params| match method.kind() {
                methods::Kind::Request => {
                    json!({"jsonrpc": "2.0", "id": 1, "method": method.name(), "params": params})
                }
                methods::Kind::Notification => {
                    json!({"jsonrpc": "2.0", "method": method.name(), "params": params})
                }
            };
            let written = Written { version, definition, message: &message, text, full };
            let all = written.check(&params, |params| write(params).expect("writing worked before"));
            said_all.set(said_all.get() + usize::from(all));
        }
    });
    assert!(said_all.get() > 0, "{method}: no revision ever had words for all of it");
}

/// The full shape loses nothing.
fn round_trips<T: Model>(value: &T) {
    let text = serde_json::to_string(value).expect("everything can be written in full");
    let back: T = serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{fault}: {text}"));
    assert_eq!(back, *value, "{text}");
}

fn result<R: Model + ResultBody>(
    definition: &'static str,
    versions: &[V],
    hint: Option<Freshness>,
    is_refused: impl Fn(&R, V) -> bool,
    prepare: impl Fn(R) -> R,
) {
    let said_all = Cell::new(0);
    for_all(|result: R| {
        let result = prepare(result);
        round_trips(&result);
        for version in versions.iter().copied() {
            let write = |result: &R| {
                let mut out = Vec::new();
                let stamp = ResultMeta { server_info: None, hint };
                write_result(&mut out, result, version, stamp)
                    .map(|()| String::from_utf8(out).expect("UTF-8"))
            };
            let written = write(&result);
            assert_eq!(written.is_err(), is_refused(&result, version), "{version} {definition} {result:?}");
            let Ok(text) = written else { continue };
            let mut full = full(&result);
            if version.era() == Era::Envelope {
                full["resultType"] = result.result_type().into();
            }
            // Members from the hint are read back as if they had been set, so they are no loss.
            let mut members: JsonObject =
                Json::encode(&result).and_then(|json| json.decode()).expect("an object");
            if hint.is_some() && version.era() == Era::Envelope {
                let Freshness { ttl_ms, scope } = result.freshness();
                let scope = Json::encode(&scope.unwrap_or(CacheScope::Private)).expect("JSON");
                full["ttlMs"] = ttl_ms.unwrap_or(0).into();
                full["cacheScope"] = self::full(&scope);
                members = members.with("ttlMs", json!(ttl_ms.unwrap_or(0))).with("cacheScope", scope);
            }
            let filled: R = Json::from(members).decode().expect("the same");
            let written = Written { version, definition, message: &|result| result, text, full };
            let all = written.check(&filled, |result| write(result).expect("writing worked before"));
            said_all.set(said_all.get() + usize::from(all));
        }
    });
    assert!(said_all.get() > 0, "{definition}: no revision ever had words for all of it");
}

fn never<T>(_: &T, _: V) -> bool {
    false
}

fn request<R: Request>(definition: &'static str, result_definition: &'static str)
where
    R::Params: Model,
    R::Result: Model,
{
    params::<R::Params>(R::METHOD, definition, never);
    let hint = R::METHOD.is_cacheable().then(Freshness::default);
    let versions: Vec<V> = versions(R::METHOD).collect();
    result::<R::Result>(result_definition, &versions, hint, never, |result| result);
}

fn notification<N: Notification>(definition: &'static str)
where
    N::Params: Model,
{
    params::<N::Params>(N::METHOD, definition, never);
}

/// No definition: extensions have no schema, so only their round trip is tested.
const NO_SCHEMA: &str = "";

macro_rules! messages {
    (requests { $($test:ident $request:ident $params:expr => $result:expr;)* }
     notifications { $($ntest:ident $notification:ident $nparams:expr;)* }) => {
        $(#[test] fn $test() { request::<methods::$request>($params, $result); })*
        $(#[test] fn $ntest() { notification::<methods::$notification>($nparams); })*

        /// The tested methods, for the check that none is missing.
        const TESTED: &[Method] = &[$(Method::$request,)* $(Method::$notification,)*];
    };
}

messages! {
    requests {
        initialize              Initialize             "InitializeRequest"            => "InitializeResult";
        server_discover         ServerDiscover         "DiscoverRequest"              => "DiscoverResult";
        ping                    Ping                   "PingRequest"                  => "EmptyResult";
        tools_list              ToolsList              "ListToolsRequest"             => "ListToolsResult";
        tools_call              ToolsCall              "CallToolRequest"              => "CallToolResult";
        resources_list          ResourcesList          "ListResourcesRequest"         => "ListResourcesResult";
        resource_templates_list ResourcesTemplatesList "ListResourceTemplatesRequest" => "ListResourceTemplatesResult";
        resources_read          ResourcesRead          "ReadResourceRequest"          => "ReadResourceResult";
        resources_subscribe     ResourcesSubscribe     "SubscribeRequest"             => "EmptyResult";
        resources_unsubscribe   ResourcesUnsubscribe   "UnsubscribeRequest"           => "EmptyResult";
        prompts_list            PromptsList            "ListPromptsRequest"           => "ListPromptsResult";
        prompts_get             PromptsGet             "GetPromptRequest"             => "GetPromptResult";
        completion_complete     CompletionComplete     "CompleteRequest"              => "CompleteResult";
        logging_set_level       LoggingSetLevel        "SetLevelRequest"              => "EmptyResult";
        sampling_create_message SamplingCreateMessage  "CreateMessageRequest"         => "CreateMessageResult";
        roots_list              RootsList              "ListRootsRequest"             => "ListRootsResult";
        tasks_update            TasksUpdate            NO_SCHEMA                      => "EmptyResult";
        tasks_cancel            TasksCancel            "CancelTaskRequest"            => "EmptyResult";
        tasks_result            TasksResult            "GetTaskPayloadRequest"        => "CallToolResult";
        tasks_list              TasksList              "ListTasksRequest"             => "ListTasksResult";
        skills_list             SkillsList             NO_SCHEMA                      => NO_SCHEMA;
        skills_get              SkillsGet              NO_SCHEMA                      => NO_SCHEMA;
        resources_directory     ResourcesDirectoryRead NO_SCHEMA                      => NO_SCHEMA;
    }
    notifications {
        initialized                Initialized               "InitializedNotification";
        progress                   Progress                  "ProgressNotification";
        message                    LoggingMessage            "LoggingMessageNotification";
        tools_list_changed         ToolsListChanged          "ToolListChangedNotification";
        resources_list_changed     ResourcesListChanged      "ResourceListChangedNotification";
        resources_updated          ResourcesUpdated          "ResourceUpdatedNotification";
        prompts_list_changed       PromptsListChanged        "PromptListChangedNotification";
        roots_list_changed         RootsListChanged          "RootsListChangedNotification";
        elicitation_complete       ElicitationComplete       "ElicitationCompleteNotification";
        subscriptions_acknowledged SubscriptionsAcknowledged "SubscriptionsAcknowledgedNotification";
        tasks                      Tasks                     NO_SCHEMA;
    }
}

/// ELI-03, P-ELI-10, P-ELI-11: URL mode does not exist before 2025-11-25, and requires an id in that revision only.
#[test]
fn elicitation_create() {
    params::<ElicitParams>(Method::ElicitationCreate, "ElicitRequest", |params, version| {
        let ElicitParams::Url(params) = params else { return false };
        version < V::V2025_11_25 || version == V::V2025_11_25 && params.elicitation_id.is_none()
    });
    let versions: Vec<V> = versions(Method::ElicitationCreate).collect();
    result::<<methods::ElicitationCreate as Request>::Result>("ElicitResult", &versions, None, never, |it| {
        it
    });
}

/// TYP-26: a cancellation can omit its request in the handshake era only.
#[test]
fn cancelled() {
    params::<CancelledParams>(Method::Cancelled, "CancelledNotification", |params, version| {
        params.request_id.is_none() && version.era() == Era::Envelope
    });
}

/// P-SUB: the result of a subscription holds its id.
#[test]
fn subscriptions_listen() {
    type Listen = methods::SubscriptionsListen;
    params::<<Listen as Request>::Params>(Listen::METHOD, "SubscriptionsListenRequest", never);
    result::<<Listen as Request>::Result>("SubscriptionsListenResult", V::ENVELOPE, None, never, |listen| {
        let meta = listen.meta.clone().unwrap_or_default();
        listen.meta(meta.with(key::SUBSCRIPTION_ID, json!(7)))
    });
}

/// TYP-21, MRTR-03: it requests something, and only in revisions where a result can.
#[test]
fn input_required() {
    let is_refused = |result: &InputRequiredResult, version: V| {
        version.era() == Era::Handshake || result.input_requests.is_none() && result.request_state.is_none()
    };
    // The full shape also rejects a value without requests, so such a value gets a request state.
    let prepare = |result: InputRequiredResult| {
        if result.input_requests.is_none() && result.request_state.is_none() {
            result.request_state("s")
        } else {
            result
        }
    };
    result::<InputRequiredResult>("InputRequiredResult", V::ALL, None, is_refused, prepare);
    let nothing = InputRequiredResult::new();
    assert!(write_result(&mut Vec::new(), &nothing, V::V2026_07_28, ResultMeta::default()).is_err());
}

/// P-TASK-24, TSK-56, TSK-59: the tasks extension does not exist in the handshake era; the experiment of 2025-11-25 has
/// the same results in another shape, and earlier revisions have none.
#[test]
fn task_results() {
    fn earlier<R>(_: &R, version: V) -> bool {
        version < V::V2025_11_25
    }
    params::<<methods::TasksGet as Request>::Params>(Method::TasksGet, "GetTaskRequest", never);
    result::<CreateTaskResult>(NO_SCHEMA, V::ALL, None, earlier, |result| result);
    result::<GetTaskResult>(NO_SCHEMA, V::ALL, None, earlier, |result| result);
}

/// TSK-05, TSK-56: the members of a task follow the revision, and both forms are read.
#[test]
fn a_task_has_the_names_of_its_revision() {
    let at = |version: V| {
        let task = Task::new("t", TaskStatus::Working, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", None);
        let mut text = Vec::new();
        let result = CreateTaskResult::new(task.poll_interval_ms(500u64));
        write_result(&mut text, &result, version, ResultMeta::default()).unwrap();
        assert_eq!(serde_json::from_slice::<CreateTaskResult>(&text).unwrap(), result);
        serde_json::from_slice::<Value>(&text).unwrap()
    };
    let times = json!({"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:01Z"});
    let mut expected = json!({"taskId": "t", "status": "working", "ttl": null, "pollInterval": 500});
    expected.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
    assert_eq!(faults(V::V2025_11_25, "Task", &expected), Vec::<String>::new());
    assert_eq!(at(V::V2025_11_25), json!({"task": expected}));
    assert_eq!(faults(V::V2025_11_25, "CreateTaskResult", &at(V::V2025_11_25)), Vec::<String>::new());
    let mut expected = json!({"taskId": "t", "status": "working", "ttlMs": null, "pollIntervalMs": 500, "resultType": "task"});
    expected.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
    assert_eq!(at(V::V2026_07_28), expected);
}

/// Tests items of `_meta` and of error data, which are not part of any message above.
fn item<T: Model + Wire>(definition: &'static str) {
    for_all(|item: T| {
        round_trips(&item);
        for version in V::ALL.iter().copied() {
            let write =
                |item: &T| serde_json::to_string(&ForRevision(item, Shape::new(version))).expect("JSON");
            let (text, full) = (write(&item), full(&item));
            Written { version, definition, message: &|item| item, text, full }.check(&item, write);
        }
    });
}

#[test]
fn items_outside_of_messages() {
    item::<ClientCapabilities>("ClientCapabilities");
    item::<ServerCapabilities>("ServerCapabilities");
    item::<Implementation>("Implementation");
}

/// P-LEG-27, P-RPC-1: each message fits the schema of every revision that has it.
#[test]
fn every_method_is_tested() {
    let by_hand = [
        Method::ElicitationCreate,
        Method::Cancelled,
        Method::SubscriptionsListen,
        Method::TasksGet,
        Method::TasksStatus,
    ];
    for row in methods::METHODS {
        assert!(TESTED.contains(&row.method) || by_hand.contains(&row.method), "{}", row.name);
    }
}

/// Request ids of every kind round-trip, also as progress tokens.
#[test]
fn request_ids_round_trip() {
    for_all(|id: RequestId| round_trips(&id));
}
