//! Tools for looking at clients: arguments of every kind, and contents of every kind.

use duplexer::prelude::*;
use duplexer::schemars::{self, JsonSchema};
use duplexer::types::resource::ResourceContents;
use serde::{Deserialize, Serialize};

/// Samples of the tone in a second, and how many there are.
const RATE: u32 = 8000;
const SAMPLES: u32 = 4000;
/// Samples of one period: 400 Hz.
const PERIOD: u32 = 20;

/// A drawing of three circles.
const CIRCLES: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 120" width="240" height="120">
<rect width="240" height="120" rx="12" fill="#eef2ff"/><circle cx="70" cy="60" r="40" fill="#4f46e5"/>
<circle cx="120" cy="60" r="40" fill="#06b6d4" opacity=".8"/><circle cx="170" cy="60" r="40" fill="#f59e0b" opacity=".8"/></svg>"##;

/// The size of a pizza.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Medium,
    Large,
}

/// A pizza.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Pizza {
    size: Size,
    /// What is on it.
    #[serde(default)]
    toppings: Vec<String>,
}

/// Where it goes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Address {
    street: String,
    /// Floor, from the ground up.
    #[schemars(range(min = 0, max = 100))]
    floor: Option<u8>,
}

/// A confirmed order.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Order {
    pizzas: Vec<Pizza>,
    address: Address,
    tip: u8,
    minutes: u32,
}

/// Orders pizza: an example of nested arguments, lists, choices and defaults.
#[tool]
pub(super) async fn order(
    /// At least one.
    #[schemars(length(min = 1, max = 10))]
    pizzas: Vec<Pizza>,
    /// Where to bring them.
    address: Address,
    /// Tip in percent.
    #[default(10)]
    #[schemars(range(min = 0, max = 50))]
    tip: u8,
) -> Order {
    let minutes = 20 + 5 * u32::try_from(pizzas.len()).unwrap_or(u32::MAX);
    Order { pizzas, address, tip, minutes }
}

/// Returns one of each kind of content: text, a picture, a sound, a resource and a link to one.
#[tool(read_only)]
pub(super) async fn gallery() -> [Content; 5] {
    [
        Content::text("One of each kind:"),
        Content::image_bytes(CIRCLES, "image/svg+xml"),
        Content::audio_bytes(tone(), "audio/wav"),
        Content::resource(ResourceContents::text(
            "demo://poem",
            "A duplexer lets one antenna\nsend and receive at once.",
        )),
        Content::resource_link("demo://readme", "readme"),
    ]
}

/// Returns half a second of a tone as a WAV file with one byte for each sample.
fn tone() -> Vec<u8> {
    let mut file = Vec::new();
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + SAMPLES).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16_u32.to_le_bytes());
    file.extend_from_slice(&1_u16.to_le_bytes());
    file.extend_from_slice(&1_u16.to_le_bytes());
    file.extend_from_slice(&RATE.to_le_bytes());
    file.extend_from_slice(&RATE.to_le_bytes());
    file.extend_from_slice(&1_u16.to_le_bytes());
    file.extend_from_slice(&8_u16.to_le_bytes());
    file.extend_from_slice(b"data");
    file.extend_from_slice(&SAMPLES.to_le_bytes());
    // A triangle between 78 and 178.
    let half = PERIOD / 2;
    file.extend((0..SAMPLES).map(|sample| {
        let phase = sample % PERIOD;
        let height = if phase < half { phase } else { PERIOD - phase };
        u8::try_from(78 + height * 100 / half).unwrap_or(128)
    }));
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tone_is_as_long_as_it_says() {
        let file = tone();
        assert_eq!(file.len(), 44 + SAMPLES as usize);
        assert!(file[44..].iter().all(|sample| (78..=178).contains(sample)));
    }
}
