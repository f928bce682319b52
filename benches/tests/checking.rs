//! What wrong arguments cost in memory, measured around whole calls. The only test of its binary: the measure is of all
//! threads.

use std::collections::HashMap;

use duplexer::client::Client;
use duplexer::testing::TestClient;
use duplexer::{Server, Tool};
use duplexer_bench::allocations::{Peak, peak_during};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: Peak = Peak;

/// Levels that remain for an argument in a message of 128.
const DEEPEST: usize = 124;

macro_rules! recursive {
    ($($(#[$attribute:meta])* $kind:ident $name:ident $body:tt)*) => {$(
        #[derive(Deserialize, JsonSchema)]
        $(#[$attribute])*
        #[expect(dead_code, reason = "no call gets this far")]
        $kind $name $body
    )*};
}

recursive! {
    struct Struct { value: i32, next: Option<Box<Struct>> }
    struct Map { value: i32, next: HashMap<String, Map> }
    struct List { value: i32, next: Vec<List> }
    struct Tuple { value: i32, next: Option<(i32, Box<Tuple>)> }
    struct Links { next: Option<Box<Flat>> }
    struct Flat { value: i32, #[serde(flatten)] links: Links }
    enum External { Not(Box<External>), Both { left: Box<External>, right: Box<External> }, Is { value: i32 } }
    #[serde(tag = "type")]
    enum Internal { Not { left: Box<Internal> }, Both { left: Box<Internal>, right: Box<Internal> }, Is { value: i32 } }
    #[serde(tag = "t", content = "c")]
    enum Adjacent { Not(Box<Adjacent>), Both { left: Box<Adjacent>, right: Box<Adjacent> }, Is { value: i32 } }
}

#[derive(Deserialize, JsonSchema)]
struct Arguments<T> {
    #[expect(dead_code, reason = "no call gets this far")]
    root: T,
}

/// Writes `open`, as often as fits into the deepest message, around `bottom`.
fn nested(open: &str, close: &str, bottom: &str) -> String {
    let levels = open.matches(['{', '[']).count();
    let times = (DEEPEST - bottom.matches(['{', '[']).count()) / levels;
    format!("{}{bottom}{}", open.repeat(times), close.repeat(times))
}

/// Calls a tool with an argument that is wrong at the bottom, and checks the memory of the call.
fn check<T: DeserializeOwned + JsonSchema + Send + 'static>(open: &str, close: &str, bottom: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tool = Tool::new("tool", |_: Arguments<T>| async { "served" });
    let server = Server::builder("test", "0").tool(tool).build().unwrap();
    let text = nested(open, close, bottom);
    let root: Value = serde_json::from_str(&text).unwrap();
    let client = runtime.block_on(TestClient::connect(&server, Client::builder("test", "0"))).unwrap();
    let arguments = json!({ "root": root });
    let call = || runtime.block_on(async { client.call_tool("tool", arguments.clone()).await });
    // What is made once, such as the compiled schema, is not part of the measure.
    drop(call());
    let (result, peak) = peak_during(call);
    let result = result.unwrap();
    let said = result.content[0].as_text().unwrap_or_default();
    assert!(result.is_error == Some(true) && said.contains("/value: expected an integer"), "{said}");
    println!("{}: {peak} bytes for {}", T::schema_name(), text.len());
    assert!(peak <= text.len() * ((1 << 20) / 1000), "{}: {peak} bytes for {text}", T::schema_name());
}

/// Hardening, finding 1: a call with an argument of any recursive shape, nested as deep as a message can be and wrong at the
/// bottom, takes at most 1 MiB per kB of input.
#[test]
fn wrong_arguments_take_a_mebibyte_per_kilobyte_at_most() {
    let wrong = r#"{"value":true}"#;
    check::<Struct>(r#"{"value":1,"next":"#, "}", wrong);
    check::<Map>(r#"{"value":1,"next":{"k":"#, "}}", r#"{"value":true,"next":{}}"#);
    check::<List>(r#"{"value":1,"next":["#, "]}", r#"{"value":true,"next":[]}"#);
    check::<Tuple>(r#"{"value":1,"next":[1,"#, "]}", wrong);
    check::<Flat>(r#"{"value":1,"next":"#, "}", wrong);
    check::<External>(r#"{"Not":"#, "}", r#"{"Is":{"value":true}}"#);
    check::<External>(r#"{"Both":{"right":{"Is":{"value":1}},"left":"#, "}}", r#"{"Is":{"value":true}}"#);
    let wrong = r#"{"type":"Is","value":true}"#;
    check::<Internal>(r#"{"type":"Not","left":"#, "}", wrong);
    check::<Internal>(r#"{"type":"Both","right":{"type":"Is","value":1},"left":"#, "}", wrong);
    let wrong = r#"{"t":"Is","c":{"value":true}}"#;
    check::<Adjacent>(r#"{"t":"Not","c":"#, "}", wrong);
    check::<Adjacent>(r#"{"t":"Both","c":{"right":{"t":"Is","c":{"value":1}},"left":"#, "}}", wrong);
}
