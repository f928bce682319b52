//! Plain scalars of YAML: the core schema of YAML 1.2.

use serde_json::Number;

/// Value of a plain scalar.
#[derive(Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Number(Number),
    Text,
}

/// Returns the value of a plain scalar, or why it has none in JSON.
pub(super) fn resolve(text: &str) -> Result<Scalar, &'static str> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "true" | "True" | "TRUE" => Scalar::Bool(true),
        "false" | "False" | "FALSE" => Scalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Err("JSON has no number for `.nan`: quote it to make it a text"),
        _ => number(text)?.map_or(Scalar::Text, Scalar::Number),
    })
}

/// JSON has no such number.
const TOO_LARGE: &str = "the number is too large: quote it to make it a text";

/// Returns the number that the text denotes, if it denotes one.
fn number(text: &str) -> Result<Option<Number>, &'static str> {
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Err(TOO_LARGE);
    }
    if !is_decimal(unsigned) {
        return Ok(None);
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    let whole = plain.parse::<i64>().map(Number::from).or_else(|_| plain.parse::<u64>().map(Number::from));
    let number = whole.ok().or_else(|| plain.parse::<f64>().ok().and_then(Number::from_f64));
    number.map(Some).ok_or(TOO_LARGE)
}

fn radix(digits: &str, radix: u32) -> Result<Option<Number>, &'static str> {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Ok(None);
    }
    u64::from_str_radix(digits, radix).map(|number| Some(number.into())).map_err(|_| TOO_LARGE)
}

/// Whether the text is digits, with an optional fraction and an optional exponent.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some((whole, "")) => digits(whole),
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(mantissa),
    };
    is_mantissa
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SKL-D3: the core schema of YAML 1.2, and nothing of YAML 1.1.
    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let text = |text: &str| match resolve(text) {
            Ok(Scalar::Null) => "null".to_owned(),
            Ok(Scalar::Bool(value)) => value.to_string(),
            Ok(Scalar::Number(number)) => number.to_string(),
            Ok(Scalar::Text) => "text".to_owned(),
            Err(_) => "refused".to_owned(),
        };
        for (scalar, expected) in [
            ("", "null"),
            ("~", "null"),
            ("NULL", "null"),
            ("nUll", "text"),
            ("True", "true"),
            ("FALSE", "false"),
            ("yes", "text"),
            ("on", "text"),
            ("7", "7"),
            ("+7", "7"),
            ("-7", "-7"),
            ("007", "7"),
            ("18446744073709551615", "18446744073709551615"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("0x", "text"),
            ("0b1", "text"),
            ("1_000", "text"),
            ("1.5", "1.5"),
            (".5", "0.5"),
            ("1.", "1.0"),
            ("-1e3", "-1000.0"),
            ("1e", "text"),
            (".", "text"),
            ("-", "text"),
            ("e3", "text"),
            ("1e999", "refused"),
            (".inf", "refused"),
            ("-.INF", "refused"),
            (".nan", "refused"),
            ("0xffffffffffffffffff", "refused"),
            ("2026-11-17", "text"),
            ("12:30", "text"),
            ("1.2.3", "text"),
            ("infinity", "text"),
            ("nan", "text"),
        ] {
            assert_eq!(text(scalar), expected, "{scalar}");
        }
    }
}
