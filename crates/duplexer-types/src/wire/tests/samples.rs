//! Single messages, written out.

use serde_json::{Value, json};

use crate::annotations::Annotations;
use crate::capabilities::{
    ClientCapabilities, ElicitationCapability, RootsCapability, ServerCapabilities, ToolsCapability,
};
use crate::completion::Completion;
use crate::content::{AudioContent, Content, ResourceLink};
use crate::elicitation::{
    Choice, ElicitParams, ElicitResult, ElicitUrlParams, EnumSchema, FormSchema, MultiSelectSchema,
    PrimitiveSchema, UrlElicitationRequired,
};
use crate::error::{ErrorCode, ErrorObject};
use crate::input::{InputRequest, InputRequiredResult, InputResponse};
use crate::json::{Json, JsonObject};
use crate::lifecycle::{EmptyParams, Implementation, MissingCapabilityData, UnsupportedVersionData};
use crate::logging::{LoggingLevel, SetLevelParams};
use crate::methods::Method;
use crate::progress::ProgressParams;
use crate::prompt::PromptMessage;
use crate::resource::{ReadResourceResult, ResourceContents};
use crate::sampling::{Blocks, CreateMessageParams, CreateMessageResult, SamplingContent, SamplingMessage};
use crate::task::{CreateTaskResult, DetailedTask, Task, TaskStatus};
use crate::tool::{CallToolResult, ListToolsResult, ToolDefinition};
use crate::version::ProtocolVersion as V;
use crate::wire::{ForRevision, Shape, Wire, result_type, result_type_of, write_params};

fn at<T: Wire>(version: V, value: &T) -> Value {
    serde_json::to_value(ForRevision(value, Shape::new(version))).unwrap()
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

/// TYP-07: declared members are absent or have a value; nulls of free-form JSON stay.
#[test]
fn optional_is_absent_and_free_form_nulls_stay() {
    let result: CallToolResult = read(
        r#"{"content":[{"type":"text","text":"t","annotations":null}],"isError":null,"structuredContent":{"z":null,"a":1e2},"_meta":{"k":null}}"#,
    );
    assert_eq!(
        serde_json::to_string(&result).unwrap(),
        r#"{"content":[{"type":"text","text":"t"}],"structuredContent":{"z":null,"a":1e2},"_meta":{"k":null}}"#,
    );
}

/// P-TOOL: a structured `null` differs from absent structured content.
#[test]
fn structured_null_is_not_absent() {
    let check = |text: &str, expected: Option<Json>| {
        let result: CallToolResult = read(text);
        assert_eq!(result.structured_content, expected, "{text}");
        assert_eq!(serde_json::to_string(&result).unwrap(), text);
    };
    check(r#"{"content":[]}"#, None);
    check(r#"{"content":[],"structuredContent":null}"#, Some(Json::null()));
}

/// TYP-08: only the names of the specification are accepted.
#[test]
fn snake_case_is_not_an_alias() {
    assert!(
        serde_json::from_str::<ToolDefinition>(r#"{"name":"t","input_schema":{"type":"object"}}"#).is_err()
    );
    let result: CallToolResult = read(r#"{"content":[],"is_error":true}"#);
    assert_eq!(result.is_error, None);
}

/// `false` is written if it was set.
#[test]
fn false_is_written_when_set() {
    let capabilities = ServerCapabilities::new().tools(ToolsCapability::new().list_changed(false));
    assert_eq!(at(V::V2025_11_25, &capabilities), json!({"tools": {"listChanged": false}}));
    assert_eq!(at(V::V2025_11_25, &CallToolResult::text("t").is_error(false))["isError"], false);
}

/// TYP-15, EXF-03: extensions have a form in either era, the capability of tasks only in 2025-11-25.
#[test]
fn capabilities_are_filtered_by_revision() {
    let extensions = JsonObject::new().with("io.example/x", json!({}));
    let server = ServerCapabilities::new().extensions(extensions.clone()).tasks(JsonObject::new());
    assert_eq!(at(V::V2025_11_25, &server), json!({"extensions": {"io.example/x": {}}, "tasks": {}}));
    assert_eq!(at(V::V2026_07_28, &server), json!({"extensions": {"io.example/x": {}}}));
    let client = ClientCapabilities::new()
        .roots(RootsCapability::new().list_changed(true))
        .elicitation(ElicitationCapability::new().url(JsonObject::new()))
        .extensions(extensions);
    assert_eq!(
        at(V::V2024_11_05, &client),
        json!({"roots": {"listChanged": true}, "extensions": {"io.example/x": {}}})
    );
    assert_eq!(
        at(V::V2025_06_18, &client),
        json!({"roots": {"listChanged": true}, "elicitation": {}, "extensions": {"io.example/x": {}}})
    );
    assert_eq!(
        at(V::V2026_07_28, &client),
        json!({"roots": {}, "elicitation": {"url": {}}, "extensions": {"io.example/x": {}}}),
    );
}

#[test]
fn an_empty_elicitation_capability_means_forms() {
    let check = |text: &str, form: bool, url: bool| {
        let capability: ElicitationCapability = read(text);
        assert_eq!((capability.asks_by_form(), capability.asks_by_url()), (form, url), "{text}");
    };
    check("{}", true, false);
    check(r#"{"form":{}}"#, true, false);
    check(r#"{"url":{}}"#, false, true);
    check(r#"{"form":{},"url":{}}"#, true, true);
}

/// TYP-16: before 2026-07-28 structured content is an object or is omitted; the text stays.
#[test]
fn structured_content_that_is_no_object_is_omitted_in_older_revisions() {
    let list = CallToolResult::structured(Json::parse("[1, 2]").unwrap());
    let text = json!([{"type": "text", "text": "[1, 2]"}]);
    for version in V::HANDSHAKE {
        assert_eq!(at(*version, &list), json!({"content": text}), "{version}");
    }
    assert_eq!(at(V::V2026_07_28, &list), json!({"content": text, "structuredContent": [1, 2]}));
    let object = CallToolResult::structured(Json::parse(r#"{"a":1}"#).unwrap());
    assert_eq!(at(V::V2025_03_26, &object).get("structuredContent"), None);
    assert_eq!(at(V::V2025_06_18, &object)["structuredContent"], json!({"a": 1}));
}

/// TYP-17: before 2026-07-28 an output schema describes an object or is omitted.
#[test]
fn output_schemas_of_other_types_are_omitted_in_older_revisions() {
    let tool = |schema: &str| {
        ToolDefinition::new("t", Json::parse(r#"{"type":"object"}"#).unwrap())
            .output_schema(Json::parse(schema).unwrap())
    };
    for schema in [r#"{"type":"array"}"#, r#"{"properties":{}}"#, r#"{"type":["object","null"]}"#, "{}"] {
        assert_eq!(at(V::V2025_11_25, &tool(schema)).get("outputSchema"), None, "{schema}");
        assert!(at(V::V2026_07_28, &tool(schema)).get("outputSchema").is_some(), "{schema}");
    }
    let object = tool(r#"{ "type": "object", "$defs": {} }"#);
    assert_eq!(at(V::V2025_03_26, &object).get("outputSchema"), None);
    assert_eq!(at(V::V2025_06_18, &object)["outputSchema"], json!({"type": "object", "$defs": {}}));
}

/// P-LEG-27: revisions without a kind of content get a text that describes it.
#[test]
fn unknown_kinds_become_text_in_older_revisions() {
    let hints = Annotations::new().priority(1.0);
    let audio = Content::from(AudioContent::new("AAAA", "audio/wav").annotations(hints.clone()));
    let words = json!({"type": "text", "text": "[audio: audio/wav]", "annotations": {"priority": 1}});
    assert_eq!(at(V::V2024_11_05, &audio), words);
    assert_eq!(at(V::V2025_03_26, &audio)["type"], "audio");
    let link = Content::from(ResourceLink::new("file:///a", "a").title("A"));
    for version in [V::V2024_11_05, V::V2025_03_26] {
        assert_eq!(at(version, &link), json!({"type": "text", "text": "A: file:///a"}), "{version}");
    }
    assert_eq!(at(V::V2025_06_18, &link)["type"], "resource_link");
    // Also where content is nested in another value.
    assert_eq!(at(V::V2024_11_05, &PromptMessage::user(audio))["content"], words);
}

/// An unknown item is kept verbatim and does not invalidate the others.
#[test]
fn unknown_items_are_kept_verbatim() {
    let text = r#"{"content":[{"type":"hologram","x":[1, null]},{"text":"t","type":"text"},{"kind":"?"}]}"#;
    let result: CallToolResult = read(text);
    assert!(matches!(&result.content[..], [Content::Other(_), Content::Text(_), Content::Other(_)]));
    let again = serde_json::to_string(&result).unwrap();
    assert!(again.contains(r#"{"type":"hologram","x":[1, null]}"#), "{again}");
    assert!(again.contains(r#"{"kind":"?"}"#), "{again}");

    let list: ListToolsResult = read(
        r#"{"tools":[{"name":"t","inputSchema":{},"icons":[{"src":"s","theme":"sepia"}]}],"ttlMs":-1,"cacheScope":"family"}"#,
    );
    assert_eq!(at(V::V2025_11_25, &list)["tools"][0]["icons"][0]["theme"], "sepia");
    // Invalid freshness means "stale" and "private".
    assert_eq!((list.ttl_ms, list.cache_scope), (Some(0), Some(crate::wire::CacheScope::Private)));

    let contents: ReadResourceResult =
        read(r#"{"contents":[{"uri":"a"},{"uri":"b","blob":""},{"uri":"c","text":""}]}"#);
    assert!(matches!(
        &contents.contents[..],
        [ResourceContents::Other(_), ResourceContents::Blob(_), ResourceContents::Text(_)]
    ));

    let form: FormSchema = read(
        r#"{"type":"object","properties":{"a":{"type":"colour"},"b":{"type":"array","items":{"type":"integer"}},"c":{"type":"boolean"}}}"#,
    );
    assert!(matches!(form.properties.get("a"), Some(PrimitiveSchema::Other(_))));
    assert!(matches!(form.properties.get("b"), Some(PrimitiveSchema::Other(_))));
    assert!(matches!(form.properties.get("c"), Some(PrimitiveSchema::Boolean(_))));

    let text =
        r#"{"type":"object","properties":{},"required":["a"],"title":"T","additionalProperties":false}"#;
    let form: FormSchema = read(text);
    assert_eq!(form.others.get("title"), Some(&Json::from("T")));
    assert_eq!(serde_json::to_string(&form).unwrap(), text);
    for refused in ["{}", r#"{"properties":null}"#, r#"{"properties":{},"required":[1]}"#, "[]"] {
        assert!(serde_json::from_str::<FormSchema>(refused).is_err(), "{refused}");
    }
}

/// A known but malformed item is refused, and so is one that is not an object.
#[test]
fn malformed_content_is_refused() {
    for item in [r#"{"type":"text"}"#, r#"{"type":"image","data":""}"#, "5", "null", "[]"] {
        assert!(serde_json::from_str::<Content>(item).is_err(), "{item}");
    }
}

/// TYP-25: a single block is an object, several are an array if the revision has arrays.
#[test]
fn sampling_blocks_are_an_object_or_an_array() {
    let block = |text: &str| SamplingContent::text(text);
    let one = SamplingMessage::user("a");
    let two = SamplingMessage::assistant(vec![block("b"), block("c")]);
    let params = CreateMessageParams::new([one, two], 10);
    let said = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        at(V::V2025_11_25, &params)["messages"],
        json!([{"role": "user", "content": said("a")}, {"role": "assistant", "content": [said("b"), said("c")]}]),
    );
    assert_eq!(
        at(V::V2025_06_18, &params)["messages"],
        json!([
            {"role": "user", "content": said("a")},
            {"role": "assistant", "content": said("b")},
            {"role": "assistant", "content": said("c")},
        ]),
    );
    let answer = |blocks: Vec<SamplingContent>| {
        at(V::V2025_06_18, &CreateMessageResult::new(crate::annotations::Role::Assistant, blocks, "m"))["content"].take()
    };
    assert_eq!(answer(vec![block("b"), block("c")]), said("b\nc"));
    assert_eq!(answer(vec![]), said(""));
    assert_eq!(read::<Blocks>(r#"[{"type":"text","text":"a"}]"#), Blocks::from("a"));
    assert_eq!(read::<Blocks>(r#"{"type":"text","text":"a"}"#), Blocks::from("a"));
}

/// The three spellings of options, and multiple choice where only single choice exists.
#[test]
fn options_are_spelled_for_the_revision() {
    let titled = || [Choice::titled("r", "Red"), Choice::titled("g", "Green")];
    let one = PrimitiveSchema::Enum(EnumSchema::new(titled()).default_value("r"));
    let one_of = json!([{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]);
    assert_eq!(at(V::V2025_11_25, &one), json!({"type": "string", "oneOf": one_of, "default": "r"}));
    let old = json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]});
    assert_eq!(at(V::V2025_06_18, &one), old);
    assert_eq!(read::<PrimitiveSchema>(&old.to_string()), PrimitiveSchema::Enum(EnumSchema::new(titled())));
    let plain = PrimitiveSchema::Enum(EnumSchema::new([Choice::new("r")]));
    assert_eq!(at(V::V2026_07_28, &plain), json!({"type": "string", "enum": ["r"]}));
    let any = PrimitiveSchema::MultiSelect(MultiSelectSchema::new(titled()).min_items(1_u64));
    assert_eq!(at(V::V2026_07_28, &any), json!({"type": "array", "minItems": 1, "items": {"anyOf": one_of}}));
    assert_eq!(at(V::V2025_06_18, &any), old);
}

/// ELI-03, P-ELI-7: without a mode it is a form; an unknown mode is kept.
#[test]
fn the_mode_selects_the_kind_of_elicitation() {
    let schema = || FormSchema::new(JsonObject::new());
    let form = ElicitParams::form("m", schema());
    let written = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    assert_eq!(at(V::V2025_06_18, &form), written);
    assert_eq!(at(V::V2025_11_25, &form)["mode"], "form");
    assert_eq!(read::<ElicitParams>(&written.to_string()), form);
    let url = ElicitParams::url("m", "https://a/");
    assert_eq!(at(V::V2026_07_28, &url), json!({"mode": "url", "message": "m", "url": "https://a/"}));
    assert!(matches!(read(r#"{"mode":"telepathy","message":"m"}"#), ElicitParams::Other(_)));
    assert!(serde_json::from_str::<ElicitParams>(r#"{"mode":"url","message":"m"}"#).is_err());
}

/// MRTR-01, MRTR-02: input requests in a result and their responses, each recognized by its members.
#[test]
fn input_is_requested_and_provided() {
    let asked = InputRequiredResult::asking([
        ("confirm", InputRequest::from(ElicitParams::url("m", "https://a/"))),
        ("roots", InputRequest::ListRoots),
    ])
    .request_state("s");
    let written = at(V::V2026_07_28, &asked);
    assert_eq!(written["inputRequests"]["confirm"]["method"], "elicitation/create");
    assert_eq!(written["inputRequests"]["roots"], json!({"method": "roots/list", "params": {}}));
    assert_eq!(
        asked.input_requests.as_ref().unwrap().get("roots").unwrap().method(),
        Some(Method::RootsList)
    );
    assert_eq!(read::<InputRequest>(r#"{"method":"roots/list"}"#), InputRequest::ListRoots);
    assert!(matches!(read(r#"{"method":"tools/call","params":{}}"#), InputRequest::Other(_)));

    let given = |text: &str| read::<InputResponse>(text);
    assert_eq!(given(r#"{"action":"decline"}"#), InputResponse::Elicit(ElicitResult::decline()));
    assert!(matches!(given(r#"{"roots":[]}"#), InputResponse::ListRoots(_)));
    let message = r#"{"role":"assistant","model":"m","content":{"type":"text","text":"t"}}"#;
    assert!(matches!(given(message), InputResponse::CreateMessage(_)));
    for odd in [r#"{"action":7}"#, "{}", "null", "[]"] {
        assert!(matches!(given(odd), InputResponse::Other(_)), "{odd}");
    }
}

/// TYP-22: `resultType` is the kind of a result; without one it is complete.
#[test]
fn the_kind_of_a_result_is_its_result_type() {
    assert_eq!(result_type_of(r#"{"a":1}"#).unwrap(), result_type::COMPLETE);
    assert_eq!(result_type_of(r#"{"resultType":"input_required"}"#).unwrap(), result_type::INPUT_REQUIRED);
    assert_eq!(result_type_of(r#"{"resultType":"ta\u0073k"}"#).unwrap(), result_type::TASK);
    for odd in [r#"{"resultType":7}"#, "[]", r#"{"resultType":"a","resultType":"b"}"#] {
        assert!(result_type_of(odd).is_err(), "{odd}");
    }
}

/// P-TASK-3, P-TASK-6: a task is flat, its `ttlMs` is present even as `null`, its detail fits its status.
#[test]
fn tasks_are_flat() {
    let task = || Task::new("t", TaskStatus::Working, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", None);
    let flat = json!({
        "taskId": "t",
        "status": "working",
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:01Z",
        "ttlMs": null,
    });
    assert_eq!(at(V::V2026_07_28, &CreateTaskResult::new(task())), flat);
    assert!(
        serde_json::from_str::<Task>(
            r#"{"taskId":"t","status":"working","createdAt":"","lastUpdatedAt":""}"#
        )
        .is_err()
    );
    let failed = DetailedTask::failed(task(), ErrorObject::internal());
    assert_eq!(at(V::V2026_07_28, &failed)["status"], "failed");
    assert_eq!(at(V::V2026_07_28, &failed)["error"]["code"], -32603);
    assert!(failed.task.status.is_final());
}

/// TYP-24: levels ascend, and the set is closed.
#[test]
fn logging_levels_ascend_and_are_closed() {
    let names: Vec<_> = LoggingLevel::ALL.iter().map(|level| level.as_str()).collect();
    assert_eq!(names, ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]);
    assert!(LoggingLevel::ALL.is_sorted());
    for level in LoggingLevel::ALL {
        assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
    }
    assert!(serde_json::from_str::<SetLevelParams>(r#"{"level":"trace"}"#).is_err());
}

/// TYP-28: singular and plural message, and the round trip.
#[test]
fn url_elicitation_required_is_an_error_and_can_be_read_back() {
    let url = |id: &str| ElicitUrlParams::new("m", "https://a/").elicitation_id(id);
    for (elicitations, message) in [
        (vec![url("1")], "URL elicitation required"),
        (vec![url("1"), url("2")], "URL elicitations required"),
    ] {
        let required = UrlElicitationRequired::new(elicitations);
        let error = required.error();
        assert_eq!((error.code, &*error.message), (ErrorCode::URL_ELICITATION_REQUIRED, message));
        let response = json!({"jsonrpc": "2.0", "id": 1, "error": error});
        let faults = super::schema::faults(V::V2025_11_25, "URLElicitationRequiredError", &response);
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(UrlElicitationRequired::from_error(&error), Some(required));
    }
    assert_eq!(UrlElicitationRequired::from_error(&ErrorObject::internal()), None);
}

/// Data of the errors of the envelope era.
#[test]
fn errors_carry_typed_data() {
    let missing =
        MissingCapabilityData::new(ClientCapabilities::new().elicitation(ElicitationCapability::new()));
    let error = missing.error("elicitation is needed");
    let response = json!({"jsonrpc": "2.0", "id": 1, "error": error});
    let name = "MissingRequiredClientCapabilityError";
    assert!(super::schema::faults(V::V2026_07_28, name, &response).is_empty());
    assert_eq!(response["error"]["data"], json!({"requiredCapabilities": {"elicitation": {}}}));
    assert_eq!(error.data(), Some(missing));
    let unsupported = ErrorObject::unsupported_version(&["2026-07-28"], "1999-01-01");
    let expected = UnsupportedVersionData::new(["2026-07-28".to_owned()], "1999-01-01");
    assert_eq!(unsupported.data(), Some(expected));
}

/// Params are written in one pass, their `_meta` at the end; without members they are an empty object.
#[test]
fn params_are_written_with_their_meta() {
    let write = |meta: Option<&JsonObject>| {
        let mut out = Vec::new();
        write_params(&mut out, &ProgressParams::new("t", 0.5).total(2).message("m"), V::V2024_11_05, meta)
            .unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(write(None), r#"{"progressToken":"t","progress":0.5,"total":2}"#);
    let meta = JsonObject::new().with("k", "v");
    assert_eq!(write(Some(&meta)), r#"{"progressToken":"t","progress":0.5,"total":2,"_meta":{"k":"v"}}"#);
    let mut out = Vec::new();
    write_params(&mut out, &EmptyParams::new(), V::V2026_07_28, None).unwrap();
    assert_eq!(out, b"{}");
}

/// NaN and infinity have no JSON form: an error, not `null`.
#[test]
fn nan_and_infinity_are_refused() {
    for number in [f64::NAN, f64::INFINITY] {
        let params = ProgressParams::new("t", number);
        assert!(write_params(&mut Vec::new(), &params, V::V2026_07_28, None).is_err());
    }
}

/// P-CMP-2: at most a hundred values, and the total.
#[test]
fn completions_are_truncated_to_a_hundred() {
    let of = |count: usize| Completion::truncated(vec![String::new(); count]);
    assert_eq!(of(100), Completion::new(vec![String::new(); 100]));
    assert_eq!(of(101), Completion::new(vec![String::new(); 100]).total(101_u64).has_more(true));
}

#[test]
fn implementations_have_the_members_of_the_revision() {
    let implementation = Implementation::new("n", "1").title("T").description("D").website_url("https://a/");
    assert_eq!(at(V::V2025_03_26, &implementation), json!({"name": "n", "version": "1"}));
    assert_eq!(at(V::V2025_06_18, &implementation), json!({"name": "n", "version": "1", "title": "T"}));
    assert_eq!(at(V::V2025_11_25, &implementation)["websiteUrl"], "https://a/");
}
