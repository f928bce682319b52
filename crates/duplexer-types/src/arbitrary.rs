//! Arbitrary values for tests: free-form JSON, and members whose values the specification restricts.

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::elicitation::Choice;
use crate::error::{ErrorCode, ErrorObject};
use crate::json::{Json, JsonObject};
use crate::jsonrpc::RequestId;

impl<'a> Arbitrary<'a> for RequestId {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=2)? {
            0 => u.arbitrary::<i64>()?.into(),
            1 => u.arbitrary::<u64>()?.into(),
            _ => u.arbitrary::<&str>()?.into(),
        })
    }
}

impl<'a> Arbitrary<'a> for Json {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut text = String::new();
        json(u, 3, &mut text)?;
        Ok(Self::parse(&text).expect("valid JSON"))
    }
}

impl<'a, T: Arbitrary<'a>> Arbitrary<'a> for JsonObject<T> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let members: Vec<(String, T)> = u.arbitrary()?;
        Ok(members.into_iter().collect())
    }
}

impl<'a> Arbitrary<'a> for ErrorObject {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut error = Self::new(ErrorCode(u.arbitrary()?), u.arbitrary::<String>()?);
        error.data = u.arbitrary()?;
        Ok(error)
    }
}

/// Text with properties that a detour over a tree would lose: order, nulls, large numerals, spaces.
fn json(u: &mut Unstructured<'_>, depth: usize, out: &mut String) -> Result<()> {
    match u.int_in_range(0..=if depth == 0 { 6 } else { 8 })? {
        0 => out.push_str("null"),
        1 => out.push_str(if u.arbitrary()? { "true" } else { "false" }),
        2 => out.push_str(&u.arbitrary::<i64>()?.to_string()),
        3 => out.push_str("123456789012345678901234567890"),
        4 => out.push_str(u.choose(&["1.0", "-0.5e-3", "1E40", "0"])?),
        5 | 6 => out.push_str(&string(u)?),
        7 => {
            out.push('[');
            for index in 0..u.int_in_range(0..=3)? {
                out.push_str(if index == 0 { "" } else { ", " });
                json(u, depth - 1, out)?;
            }
            out.push(']');
        }
        _ => members(u, depth - 1, out)?,
    }
    Ok(())
}

fn members(u: &mut Unstructured<'_>, depth: usize, out: &mut String) -> Result<()> {
    out.push('{');
    for index in 0..u.int_in_range(0..=3)? {
        let name: String = u.arbitrary()?;
        out.push_str(if index == 0 { "" } else { "," });
        out.push_str(&serde_json::Value::from(format!("{}{name}", 9 - index)).to_string());
        out.push_str(" :");
        json(u, depth, out)?;
    }
    out.push('}');
    Ok(())
}

fn string(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(serde_json::Value::from(u.arbitrary::<String>()?).to_string())
}

/// An object.
pub(crate) fn object(u: &mut Unstructured<'_>) -> Result<Json> {
    let mut text = String::new();
    members(u, 2, &mut text)?;
    Ok(Json::parse(&text).expect("valid JSON"))
}

/// An object, or `None`.
pub(crate) fn maybe_object(u: &mut Unstructured<'_>) -> Result<Option<Json>> {
    if u.arbitrary()? { object(u).map(Some) } else { Ok(None) }
}

/// Settings: objects by name.
pub(crate) fn settings(u: &mut Unstructured<'_>) -> Result<Option<JsonObject>> {
    let names: Option<Vec<String>> = u.arbitrary()?;
    names.map(|names| names.into_iter().map(|name| Ok((name, object(u)?))).collect()).transpose()
}

/// An empty object, or `None`.
pub(crate) fn no_members(u: &mut Unstructured<'_>) -> Result<Option<JsonObject>> {
    Ok(u.arbitrary::<bool>()?.then(JsonObject::new))
}

/// A number that JSON keeps exactly.
pub(crate) fn number(u: &mut Unstructured<'_>) -> Result<f64> {
    Ok(f64::from(u.arbitrary::<i32>()?) / 4.0)
}

/// A number, or `None`.
pub(crate) fn maybe_number(u: &mut Unstructured<'_>) -> Result<Option<f64>> {
    if u.arbitrary()? { number(u).map(Some) } else { Ok(None) }
}

/// A number from 0 to 1, or `None`.
pub(crate) fn fraction(u: &mut Unstructured<'_>) -> Result<Option<f64>> {
    let sixteenths: Option<u8> = u.arbitrary()?;
    Ok(sixteenths.map(|sixteenths| f64::from(sixteenths % 17) / 16.0))
}

/// At most a hundred values.
pub(crate) fn suggestions(u: &mut Unstructured<'_>) -> Result<Vec<String>> {
    let mut values: Vec<String> = u.arbitrary()?;
    values.truncate(100);
    Ok(values)
}

/// A schema of objects.
pub(crate) fn object_schema(u: &mut Unstructured<'_>) -> Result<Json> {
    let text = u.choose(&[
        r#"{"type":"object"}"#,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","additionalProperties":false,"type":"object"}"#,
        r#"{ "type" : "object", "properties": {"b":{"type":"integer"},"a":{}}, "required":["b"], "$defs":{"x":{}}}"#,
    ])?;
    Ok(Json::parse(text).expect("JSON"))
}

/// A schema of any type, or `None`.
pub(crate) fn schema(u: &mut Unstructured<'_>) -> Result<Option<Json>> {
    Ok(match u.int_in_range(0..=4)? {
        0 => None,
        1 => Some(Json::parse(r#"{"type":"array","items":{"type":"object"}}"#).expect("JSON")),
        2 => Some(Json::parse(r#"{"anyOf":[{"type":"object"},{"type":"null"}]}"#).expect("JSON")),
        _ => Some(object_schema(u)?),
    })
}

/// Data of a form, or `None`.
pub(crate) fn answers(u: &mut Unstructured<'_>) -> Result<Option<JsonObject>> {
    fn answer(u: &mut Unstructured<'_>) -> Result<Json> {
        Ok(match u.int_in_range(0..=3)? {
            0 => u.arbitrary::<bool>()?.to_string(),
            1 => u.arbitrary::<i64>()?.to_string(),
            2 => format!("[{}]", string(u)?),
            _ => string(u)?,
        })
        .map(|text| Json::parse(&text).expect("JSON"))
    }
    let names: Option<Vec<String>> = u.arbitrary()?;
    names.map(|names| names.into_iter().map(|name| Ok((name, answer(u)?))).collect()).transpose()
}

/// Options of which all have titles or none: the protocol has no mixture.
pub(crate) fn choices(u: &mut Unstructured<'_>) -> Result<Vec<Choice>> {
    let values: Vec<String> = u.arbitrary()?;
    if u.arbitrary()? {
        values.into_iter().map(|value| Ok(Choice::titled(value, u.arbitrary::<String>()?))).collect()
    } else {
        Ok(values.into_iter().map(Choice::new).collect())
    }
}
