//! Tools, prompts and resources made with macros.

use duplexer::{Context, Server};
use duplexer_core::dispatch::Message;
use duplexer_macros::tool;
use duplexer_server::driver::check_param_headers;
use duplexer_types::headers::Values;
use duplexer_types::tool::ToolDefinition;
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

#[derive(Deserialize, JsonSchema)]
struct Filter {
    word: String,
}

/// The function, its argument and the type of the argument differ in case only.
#[tool]
async fn filter(filter: Filter) -> String {
    filter.word
}

#[tokio::test]
async fn an_argument_can_have_the_name_of_its_function() {
    let server = Server::builder("test", "0").tool(filter).build().unwrap();
    both(&server, async |client, _| {
        let answer = call(client, "filter", json!({ "filter": { "word": "a" } })).await;
        assert_eq!(text(&answer), "a");
    })
    .await;
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
    Server::builder("test", "0")
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
async fn a_marked_function_can_still_be_called() {
    assert_eq!(add::call(1, 2).await, 3);
    assert_eq!(shout::call("x".into()), "X");
    let pointer: fn(String) -> String = shout::call;
    assert_eq!(pointer("y".into()), "Y");
    assert!(predict::call(String::new(), 1, "en".into(), None, None, None).await.is_err());
}

/// Items whose names are also parameters and variables of their neighbours.
mod names {
    use duplexer::server::ServerBuilder;
    use duplexer::{Context, Server};
    use duplexer_macros::{prompt, resource, tool};

    /// Runs a query.
    #[tool]
    pub(super) async fn query(query: String) -> String {
        query
    }

    #[tool]
    pub(crate) async fn search(query: String, config: Option<String>) -> String {
        let review = query;
        format!("{review} {config:?}")
    }

    #[tool(blocking)]
    #[allow(dead_code, reason = "attributes are kept")]
    fn r#type(r#type: String) -> usize {
        r#type.len()
    }

    #[prompt]
    async fn review(search: String) -> String {
        search
    }

    #[resource("config://app")]
    async fn config() -> &'static str {
        "config"
    }

    #[resource("db://{review}")]
    async fn row(#[cx] cx: Context<u8>, review: String) -> String {
        format!("{review} {}", cx.state())
    }

    pub(super) fn server() -> ServerBuilder<u8> {
        let query = query;
        Server::builder("names", "0")
            .tool(query)
            .tool(search().rename("find"))
            .tool(r#type)
            .prompt(review)
            .resource(config)
            .state(7_u8)
            .resource(row)
    }
}

#[tokio::test]
async fn the_name_of_a_tool_can_be_a_parameter_of_another() {
    let server = names::server().dynamic().build().unwrap();
    both(&server, async |client, _| {
        let check = async |tool: &str, arguments: Value, expected: &str| {
            assert_eq!(text(&call(client, tool, arguments).await), expected);
        };
        check("query", json!({"query": "x"}), "x").await;
        check("find", json!({"query": "x"}), "x None").await;
        check("type", json!({"type": "abc"}), "3").await;
    })
    .await;
    assert_eq!(names::query::call("y".to_owned()).await, "y");
    assert_eq!(names::search::call("y".to_owned(), None).await, "y None");
}

#[tokio::test]
async fn a_marked_function_can_be_registered_while_the_server_runs() {
    let server = names::server().dynamic().build().unwrap();
    let running = server.start().await.unwrap();
    let catalog = running.catalog::<u8>().unwrap();
    let edited = catalog.edit(|edit| {
        edit.add_tool(add)?;
        edit.replace_tool(names::query)?;
        edit.add_tool(nothing().rename("none"))
    });
    edited.await.unwrap();
    assert!(format!("{catalog:?}").contains("tools: 5"), "{catalog:?}");
}

/// TOOL-06: documentation, defaults and options are in the definition.
#[tokio::test]
async fn the_signature_is_the_schema() {
    both(&server(), async |client, _| {
        let tools = client.all_tools().await.unwrap();
        let named = |name: &str| -> &ToolDefinition { tools.iter().find(|tool| tool.name == name).unwrap() };
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

/// HDR-04: a marked parameter is mirrored in a header, which transports with headers compare with the arguments; under a
/// prefix too.
#[tokio::test]
async fn a_header_must_agree_with_its_parameter() {
    let nested = Server::builder("outer", "0")
        .nest("in", Server::builder("inner", "0").tool(predict))
        .build()
        .unwrap();
    for (server, tool) in [(server(), "forecast"), (nested, "in_forecast")] {
        let running = server.start().await.unwrap();
        let check = |region: &str, header: &'static str| {
            let arguments = json!({"name": tool, "arguments": {"city": "Oslo", "region": region}});
            let call = Message::new("tools/call", Some(arguments.to_string().into()));
            check_param_headers(&running, &call, &|name| match name {
                "Mcp-Param-Region" => Values::One(header.as_bytes()),
                _ => Values::Absent,
            })
        };
        assert!(check("north", "north").is_ok(), "{tool}");
        assert!(check("north", "south").is_err(), "{tool}");
    }
}

/// Draws.
#[tool(view = "ui://chart", meta = [("com.example/team", "data"), ("com.example/cost", json!(3))])]
async fn draw() -> String {
    "drawn".to_owned()
}

#[test]
fn a_tool_can_name_its_view_and_its_metadata() {
    let tool: duplexer::Tool<()> = draw();
    let meta = tool.definition().meta.clone().unwrap();
    assert_eq!(meta.get("com.example/team").unwrap().as_str(), r#""data""#);
    assert_eq!(meta.get("com.example/cost").unwrap().as_str(), "3");
    let server = Server::builder("test", "0").tool(draw).build();
    let missing = server.unwrap_err().to_string();
    assert!(missing.contains("ui://chart"), "{missing}");
}
