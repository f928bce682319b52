//! A tool with a view: the weather of a city, drawn by a page that can ask for other days.
//!
//! The weather is invented, and always the same for a city and a day.

use duplexer::apps::View;
use duplexer::prelude::*;
use duplexer::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use super::notebook::Notebook;

/// URI of the page.
const PAGE: &str = "ui://demo/weather";
const DAYS: [Day; 4] = [Day::Today, Day::Tomorrow, Day::Saturday, Day::Sunday];

/// Returns the page.
pub(super) fn page() -> View<Notebook> {
    View::new(PAGE, include_str!("pages/weather.html")).with_bridge().title("Weather").bordered()
}

/// A day of the forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Day {
    Today,
    Tomorrow,
    Saturday,
    Sunday,
}

/// An hour of a day.
#[derive(Serialize, JsonSchema)]
struct Hour {
    #[serde(rename = "hour")]
    time: u8,
    /// Temperature in degrees Celsius.
    degrees: f64,
    /// Rain in millimetres.
    rain: f64,
}

/// The weather of one day.
#[derive(Serialize, JsonSchema)]
pub(super) struct Weather {
    city: String,
    day: Day,
    sky: &'static str,
    hours: Vec<Hour>,
    days: [Day; 4],
}

/// Shows the weather of a city. Clients with views draw it, others read it.
#[tool(read_only, view = "ui://demo/weather")]
pub(super) async fn weather(
    /// The name of a city.
    city: String,
) -> Weather {
    forecast(city, Day::Today)
}

/// Returns the weather of another day. Only the page calls it.
#[tool(read_only, app_only)]
pub(super) async fn weather_on(city: String, day: Day) -> Weather {
    forecast(city, day)
}

fn forecast(city: String, day: Day) -> Weather {
    let number = DAYS.iter().position(|one| *one == day).unwrap_or_default();
    let seed = city.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let warmth = f64::from(seed % 18) + 4.0;
    let wetness = (seed / 18 + u32::try_from(number).unwrap_or_default() * 2) % 5;
    let hours = (0..24).map(|hour| hour_of(hour, warmth, wetness)).collect();
    let sky = match wetness {
        0 => "sunny",
        1 | 2 => "some clouds",
        3 => "showers",
        _ => "rain",
    };
    Weather { city, day, sky, hours, days: DAYS }
}

fn hour_of(hour: u8, warmth: f64, wetness: u32) -> Hour {
    // Coldest at four, warmest at sixteen.
    let angle = (f64::from(hour) - 10.0) / 12.0 * std::f64::consts::PI;
    let degrees = (warmth + angle.sin() * 5.0 - f64::from(wetness) * 0.6).mul_add(10.0, 0.0).round() / 10.0;
    let is_wet = wetness >= 2 && (u32::from(hour) + wetness) % 5 < wetness - 1;
    Hour { time: hour, degrees, rain: if is_wet { f64::from(wetness) * 0.8 } else { 0.0 } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weather_of_a_day_does_not_change() {
        let text = |day| serde_json::to_string(&forecast("Lima".to_owned(), day)).unwrap();
        assert_eq!(text(Day::Today), text(Day::Today));
        assert_ne!(text(Day::Today), text(Day::Sunday));
        assert_eq!(forecast(String::new(), Day::Sunday).hours.len(), 24);
    }
}
