//! The same with macros.

use duplexer::{Context, Server};
use duplexer_core::dispatch::Invocation;
use duplexer_macros::tool;
use duplexer_server::driver::check_param_headers;
use duplexer_types::headers::Values;
use duplexer_types::tool::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::common::{both, call, text};

/// Adds two numbers.
///
/// And nothing else.
#[tool]
async fn add(
    /// The first one.
    a: i64,
    /// The second one.
    b: i64,
) -> i64 {
    a + b
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

#[tool(name = "forecast", title = "Forecast", read_only, timeout = 5)]
async fn predict(
    city: String,
    #[default(3)] days: u8,
    #[default("en")] language: String,
    unit: Option<Unit>,
    #[header("Region")] region: Option<String>,
    #[serde(rename = "maxWind")] max_wind: Option<f64>,
) -> Result<String, String> {
    if city.is_empty() {
        return Err("which city?".to_owned());
    }
    let unit = if matches!(unit, Some(Unit::Kelvin)) { "K" } else { "C" };
    Ok(format!("{city} {days} {language} {unit} {region:?} {max_wind:?}"))
}

#[tool]
async fn count(cx: Context<Vec<u8>>, mut times: usize) -> usize {
    times += 1;
    cx.state().len() * times
}

#[tool]
async fn method(cx: Context) -> String {
    cx.method().to_owned()
}

#[tool(blocking)]
fn shout(text: String) -> String {
    text.to_uppercase()
}

#[tool]
async fn nothing() {}

fn server() -> Server {
    Server::builder("test")
        .tool(add)
        .tool(predict)
        .tool(method)
        .tool(shout)
        .tool(nothing)
        .state(vec![1_u8, 2])
        .tool(count)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_marked_function_is_a_tool() {
    both(&server(), async |client, _| {
        let check = async |tool: &str, arguments: Value, expected: &str| {
            assert_eq!(text(&call(client, tool, arguments).await), expected);
        };
        check("add", json!({"a": 1, "b": 2}), "3").await;
        check("forecast", json!({"city": "Oslo"}), "Oslo 3 en C None None").await;
        let all = json!({"city": "Oslo", "days": 1, "language": "no", "unit": "kelvin", "region": "n", "maxWind": 1.5});
        check("forecast", all, r#"Oslo 1 no K Some("n") Some(1.5)"#).await;
        check("forecast", json!({"city": ""}), "which city?").await;
        check("count", json!({"times": 1}), "4").await;
        check("method", json!({}), "tools/call").await;
        check("shout", json!({"text": "hello"}), "HELLO").await;
        check("nothing", json!({}), "").await;
    })
    .await;
}

#[tokio::test]
async fn a_marked_function_is_still_a_function() {
    assert_eq!(add(1, 2).await, 3);
    assert_eq!(shout("x".into()), "X");
    let pointer: fn(String) -> String = *shout;
    assert_eq!(pointer("y".into()), "Y");
    assert!(predict(String::new(), 1, "en".into(), None, None, None).await.is_err());
}

/// TOOL-06: documentation, defaults and options are in the definition.
#[tokio::test]
async fn the_signature_is_the_schema() {
    both(&server(), async |client, _| {
        let tools = client.all_tools().await.unwrap();
        let named = |name: &str| -> &Tool { tools.iter().find(|tool| tool.name == name).unwrap() };
        let sum = named("add");
        assert_eq!(sum.description.as_deref(), Some("Adds two numbers.\n\nAnd nothing else."));
        assert_eq!(
            sum.input_schema.as_str(),
            r#"{"type":"object","properties":{"a":{"type":"integer","description":"The first one."},"b":{"type":"integer","description":"The second one."}},"required":["a","b"]}"#
        );
        let forecast = named("forecast");
        assert_eq!(forecast.title.as_deref(), Some("Forecast"));
        assert_eq!(forecast.annotations.as_ref().unwrap().read_only_hint, Some(true));
        assert!(forecast.output_schema.is_none());
        let schema: Value = forecast.input_schema.decode().unwrap();
        assert_eq!(schema["required"], json!(["city"]));
        assert_eq!(schema["properties"]["days"], json!({"type": "integer", "minimum": 0, "maximum": 255, "default": 3}));
        assert_eq!(schema["properties"]["region"], json!({"type": "string", "x-mcp-header": "Region"}));
        assert_eq!(schema["properties"]["unit"], json!({"type": "string", "enum": ["celsius", "kelvin"]}));
        assert!(schema["properties"]["maxWind"].is_object());
    })
    .await;
}

/// HDR-04: a marked parameter is mirrored in a header, which transports with headers hold against the arguments; under a
/// prefix too.
#[tokio::test]
async fn a_header_must_agree_with_its_parameter() {
    let nested = Server::builder("outer").nest("in", Server::builder("inner").tool(predict)).build().unwrap();
    for (server, tool) in [(server(), "forecast"), (nested, "in_forecast")] {
        let running = server.start().await.unwrap();
        let check = |region: &str, header: &'static str| {
            let arguments = json!({"name": tool, "arguments": {"city": "Oslo", "region": region}});
            let call = Invocation::new("tools/call", Some(arguments.to_string().into()));
            check_param_headers(&running, &call, &|name| match name {
                "Mcp-Param-Region" => Values::One(header.as_bytes()),
                _ => Values::Absent,
            })
        };
        assert!(check("north", "north").is_ok(), "{tool}");
        assert!(check("north", "south").is_err(), "{tool}");
    }
}
