//! A weather server: tools that call an HTTP API, with typed results and errors that a model can use.
//!
//! Run: `cargo run -p duplexer-examples --bin weather`; it serves standard input and output.
//! Try: `duplexer call forecast latitude:=59.9 longitude:=10.7 -- target/debug/weather`
//! Then break it: `latitude:=100` lists the fault, and without a network the cause is only on standard error.
//! The API is open-meteo.com, without a key. `WEATHER_API` replaces its address.

use std::time::Duration;

use duplexer::Context;
use duplexer::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The HTTP client and the API, shared by all calls.
struct Api {
    http: reqwest::Client,
    base: String,
}

impl Api {
    fn from_env() -> Result<Self, BoxError> {
        let base = std::env::var("WEATHER_API").unwrap_or_else(|_| "https://api.open-meteo.com".into());
        // reqwest uses the TLS library that the program chooses. With its feature `rustls` it brings one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(Duration::from_secs(10)).build()?;
        Ok(Self { http, base })
    }
}

/// What the API returns: one value per day in each list.
#[derive(Deserialize)]
struct Response {
    daily: Daily,
}

#[derive(Deserialize)]
struct Daily {
    time: Vec<String>,
    temperature_2m_max: Vec<f64>,
    temperature_2m_min: Vec<f64>,
}

/// What the tool returns.
#[derive(Serialize, JsonSchema)]
struct Day {
    /// As year-month-day.
    date: String,
    /// In degrees Celsius.
    high: f64,
    /// In degrees Celsius.
    low: f64,
}

/// Returns the weather of the coming days at a place.
#[tool(read_only)]
async fn forecast(
    cx: Context<Api>,
    /// In degrees north.
    #[schemars(range(min = -90.0, max = 90.0))]
    latitude: f64,
    /// In degrees east.
    #[schemars(range(min = -180.0, max = 180.0))]
    longitude: f64,
    /// How many days, from today on.
    #[schemars(range(min = 1, max = 16))]
    #[default(3)]
    days: u8,
) -> Result<Vec<Day>, ToolError> {
    let Api { http, base } = cx.state();
    let url = format!(
        "{base}/v1/forecast?latitude={latitude}&longitude={longitude}&forecast_days={days}\
         &daily=temperature_2m_max,temperature_2m_min&timezone=auto"
    );
    // Which address failed and why concerns the operator: it is logged. The model learns what it can do.
    let unavailable = "The weather service does not answer; try again in a minute.";
    let response = http.get(url).send().await.or_show_text(unavailable)?;
    let response = response.error_for_status().or_show_text(unavailable)?;
    // An answer that we do not understand is a defect of this program.
    let Daily { time, temperature_2m_max, temperature_2m_min } =
        response.json::<Response>().await.or_hide()?.daily;
    let temperatures = temperature_2m_max.into_iter().zip(temperature_2m_min);
    Ok(time.into_iter().zip(temperatures).map(|(date, (high, low))| Day { date, high, low }).collect())
}

fn main() -> Result<(), BoxError> {
    let server = Server::builder("weather", "1.0.0").state(Api::from_env()?).tool(forecast).build()?;
    Ok(run_stdio(&server)?)
}
