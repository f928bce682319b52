//! `Mcp-Param-*`: arguments that a tool's schema wants mirrored in headers, written and checked.
//!
//! The arguments stay text: one walk picks out the annotated ones.

use std::borrow::Cow;

use super::annotation::{self, InvalidAnnotation, Kind};
use super::number::Decimal;
use super::{PARAM_PREFIX, Values, value};
use crate::error::{ErrorCode, ErrorObject};
use crate::json::scan::{self, NotJson, Scanner};
use crate::json::{Json, Occurrence};

/// The arguments of one tool that are mirrored in headers.
#[derive(Clone, Debug, Default)]
pub struct ParamHeaders {
    params: Vec<Param>,
    root: Node,
}

#[derive(Clone, Debug)]
struct Param {
    header: String,
    /// Dotted, for messages.
    path: String,
    kind: Kind,
}

/// A property on the way to an annotated one, or an annotated one.
#[derive(Clone, Debug, Default)]
struct Node {
    param: Option<usize>,
    /// Sorted by name.
    children: Vec<(String, Node)>,
}

impl ParamHeaders {
    /// Reads the annotations of an input schema. A single invalid one makes the whole schema unfit.
    pub fn from_schema(schema: &Json) -> Result<Self, InvalidAnnotation> {
        let mut headers = Self::default();
        for annotated in annotation::collect(schema)? {
            headers.root.insert(&annotated.path, headers.params.len());
            headers.params.push(Param {
                header: format!("{}{}", PARAM_PREFIX.canonical, annotated.token),
                path: annotated.path.join("."),
                kind: annotated.kind,
            });
        }
        Ok(headers)
    }

    /// Whether nothing is mirrored, as with most tools.
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// The headers for a call with these arguments (JSON text): for every annotated one that is there.
    pub fn emit(&self, arguments: Option<&str>) -> Vec<(String, String)> {
        let found = self.find(arguments);
        let rendered = self.params.iter().zip(found).filter_map(|(param, argument)| {
            let Occurrence::One(json) = argument else {
                return None;
            };
            let text = param.render(json)?;
            Some((param.header.clone(), value::encode(&text).into_owned()))
        });
        rendered.collect()
    }

    /// Compares the headers of a call with its arguments (JSON text); the first difference is the error.
    ///
    /// `lookup` finds a header by its name, without regard to case. Arguments that are not an object are
    /// somebody else's error, and headers nobody annotated are nobody's.
    pub fn check<'h>(
        &self,
        arguments: Option<&str>,
        lookup: impl Fn(&str) -> Values<'h>,
    ) -> Result<(), ErrorObject> {
        if arguments.is_some_and(|arguments| arguments != "null" && !arguments.starts_with('{')) {
            return Ok(());
        }
        let found = self.find(arguments);
        self.params.iter().zip(found).try_for_each(|(param, argument)| {
            param.check(argument, lookup(&param.header)).map_err(|complaint| {
                let message = format!("{} header {}", param.header, complaint.text(&param.path));
                ErrorObject::new(ErrorCode::HEADER_MISMATCH, message)
            })
        })
    }

    fn find<'a>(&self, arguments: Option<&'a str>) -> Vec<Occurrence<&'a str>> {
        let mut found = vec![Occurrence::Absent; self.params.len()];
        if let Some(arguments) = arguments
            && !self.is_empty()
            && self.root.find(arguments, &mut found).is_err()
        {
            // Not an object: nothing was found in it.
            found.fill(Occurrence::Absent);
        }
        found
    }
}

impl Node {
    fn insert(&mut self, path: &[String], param: usize) {
        let Some((name, rest)) = path.split_first() else {
            self.param = Some(param);
            return;
        };
        let at = match self.position(name) {
            Ok(at) => at,
            Err(at) => {
                self.children.insert(at, (name.clone(), Self::default()));
                at
            }
        };
        if let Some((_, child)) = self.children.get_mut(at) {
            child.insert(rest, param);
        }
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.children.binary_search_by(|(child, _)| child.as_str().cmp(name))
    }

    /// Walks an object in step with the schema. As deep as the schema goes, whatever the text.
    fn find<'a>(&self, object: &'a str, found: &mut [Occurrence<&'a str>]) -> Result<(), NotJson> {
        let mut seen = vec![false; self.children.len()];
        let mut scanner = Scanner::new(object);
        let mut members = scanner.open_object()?;
        while let Some(name) = scanner.next_name(&mut members)? {
            let value = scanner.value(1)?;
            let Ok(at) = self.position(&name) else { continue };
            let (Some((_, child)), Some(seen)) = (self.children.get(at), seen.get_mut(at)) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                child.obscure(found);
            } else {
                child.take(value, found)?;
            }
        }
        Ok(())
    }

    fn take<'a>(&self, value: &'a str, found: &mut [Occurrence<&'a str>]) -> Result<(), NotJson> {
        if let Some(slot) = self.param.and_then(|param| found.get_mut(param))
            && value != "null"
        {
            *slot = Occurrence::One(value);
        }
        if !self.children.is_empty() && value.starts_with('{') {
            self.find(value, found)?;
        }
        Ok(())
    }

    fn obscure(&self, found: &mut [Occurrence<&str>]) {
        if let Some(slot) = self.param.and_then(|param| found.get_mut(param)) {
            *slot = Occurrence::Several;
        }
        for (_, child) in &self.children {
            child.obscure(found);
        }
    }
}

/// What is wrong with a header.
#[derive(Clone, Copy)]
enum Complaint {
    Repeated,
    Unexpected,
    Missing,
    Malformed,
    Different,
}

impl Complaint {
    fn text(self, path: &str) -> String {
        match self {
            Self::Repeated => "appears more than once".to_owned(),
            Self::Unexpected => format!("is present but the request body's '{path}' argument is absent"),
            Self::Missing => format!("is missing but the request body's '{path}' argument is present"),
            Self::Malformed => "carries a malformed base64 sentinel value".to_owned(),
            Self::Different => format!("does not match the request body's '{path}' argument"),
        }
    }
}

impl Param {
    /// The argument as a header says it; `None` for objects and arrays, which no header can.
    fn render<'a>(&self, json: &'a str) -> Option<Cow<'a, str>> {
        match json.as_bytes().first()? {
            b'{' | b'[' => None,
            b'"' => scan::string(json),
            b'-' | b'0'..=b'9' if self.kind == Kind::Integer => {
                let digits = Decimal::read(json).and_then(|number| number.integer());
                Some(digits.map_or(Cow::Borrowed(json), Cow::Owned))
            }
            _ => Some(Cow::Borrowed(json)),
        }
    }

    fn check(&self, argument: Occurrence<&str>, header: Values<'_>) -> Result<(), Complaint> {
        let header = match header {
            Values::Several => return Err(Complaint::Repeated),
            Values::Absent => None,
            Values::One(header) => Some(header),
        };
        let json = match (argument, header) {
            (Occurrence::Absent, None) => return Ok(()),
            (Occurrence::Absent, Some(_)) => return Err(Complaint::Unexpected),
            (Occurrence::Several, None) => return Err(Complaint::Missing),
            (Occurrence::Several, Some(_)) => return Err(Complaint::Different),
            (Occurrence::One(json), _) => json,
        };
        match (self.render(json), header) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(Complaint::Different),
            (Some(_), None) => Err(Complaint::Missing),
            (Some(text), Some(header)) => self.compare(json, &text, header),
        }
    }

    fn compare(&self, json: &str, text: &str, header: &[u8]) -> Result<(), Complaint> {
        let says = match value::decode(header) {
            Some(says) => says,
            None if value::is_sentinel(header) => return Err(Complaint::Malformed),
            None => return Err(Complaint::Different),
        };
        if says == text || says == json && !json.starts_with('"') || self.equal_integers(json, &says) {
            Ok(())
        } else {
            Err(Complaint::Different)
        }
    }

    fn equal_integers(&self, json: &str, says: &str) -> bool {
        self.kind == Kind::Integer
            && Decimal::read(json).is_some_and(|number| {
                number.is_integer() && Decimal::read_plain(says).as_ref() == Some(&number)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> ParamHeaders {
        let schema = serde_json::json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "on": { "type": "boolean", "x-mcp-header": "On" },
            "where": { "properties": { "zone": { "type": "string", "x-mcp-header": "Zone" } } },
        }});
        ParamHeaders::from_schema(&Json::from(schema)).unwrap()
    }

    fn emitted(arguments: &str) -> Vec<String> {
        headers().emit(Some(arguments)).iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    /// The verdict on `arguments` beside `sent`, and what it says after the header's name.
    fn verdict(arguments: Option<&str>, sent: &[(&str, &str)]) -> Result<(), String> {
        let lookup = |name: &str| {
            let same = sent.iter().filter(|(sent, _)| sent.eq_ignore_ascii_case(name));
            same.map(|(_, value)| value.as_bytes()).collect()
        };
        headers().check(arguments, lookup).map_err(|error| {
            assert_eq!(error.code, ErrorCode::HEADER_MISMATCH);
            error.message.into_owned()
        })
    }

    /// HDR-05, P-HDR-15, P-HDR-16, P-HDR-20, P-HDR-26.
    #[test]
    fn annotated_arguments_are_emitted_in_their_plainest_form() {
        assert_eq!(
            emitted(r#"{"other":1,"region":"us\u002dwest1","count":42,"on":true,"where":{"zone":"日本"}}"#),
            [
                "Mcp-Param-Count: 42",
                "Mcp-Param-On: true",
                "Mcp-Param-Region: us-west1",
                "Mcp-Param-Zone: =?base64?5pel5pys?="
            ],
        );
        assert_eq!(emitted(r#"{"count":4.20e1,"region":""}"#), ["Mcp-Param-Count: 42", "Mcp-Param-Region: "]);
        assert_eq!(
            emitted(r#"{"count":1.5,"region":1e2}"#),
            ["Mcp-Param-Count: 1.5", "Mcp-Param-Region: 1e2"]
        );
        assert_eq!(
            emitted(r#"{"count":123456789012345678901234567890}"#),
            ["Mcp-Param-Count: 123456789012345678901234567890"],
        );
        for nothing in [r#"{"region":null,"on":[],"count":{},"where":7}"#, "{}", "null", "[]", "", "{bad"] {
            assert_eq!(emitted(nothing), [""; 0], "{nothing}");
        }
        assert!(headers().emit(None).is_empty());
    }

    /// HDR-06: the exact texts, in their order.
    #[test]
    fn each_difference_has_its_text() {
        let check = |arguments: &str, sent: &[(&str, &str)], text: &str| {
            assert_eq!(verdict(Some(arguments), sent), Err(text.to_owned()), "{arguments} {sent:?}");
        };
        let region = r#"{"region":"eu"}"#;
        check(
            region,
            &[("mcp-param-region", "eu"), ("MCP-PARAM-REGION", "eu")],
            "Mcp-Param-Region header appears more than once",
        );
        for absent in ["{}", r#"{"region":null}"#] {
            check(
                absent,
                &[("mcp-param-region", "eu")],
                "Mcp-Param-Region header is present but the request body's 'region' argument is absent",
            );
        }
        check(
            r#"{"where":{"zone":"a"}}"#,
            &[],
            "Mcp-Param-Zone header is missing but the request body's 'where.zone' argument is present",
        );
        for malformed in ["=?base64?ZXU?=", "=?base64?ZX!?=", "=?base64?/w==?="] {
            check(
                region,
                &[("mcp-param-region", malformed)],
                "Mcp-Param-Region header carries a malformed base64 sentinel value",
            );
        }
        for (arguments, value) in [
            (region, "EU"),
            (region, ""),
            (region, "\"eu\""),
            (r#"{"region":{}}"#, "{}"),
            (r#"{"region":"é"}"#, "é"),
        ] {
            check(
                arguments,
                &[("mcp-param-region", value)],
                "Mcp-Param-Region header does not match the request body's 'region' argument",
            );
        }
    }

    /// HDR-06, P-HDR-10, P-HDR-11, P-HDR-18.
    #[test]
    fn what_agrees_is_accepted() {
        let region = r#"{"region":"eu"}"#;
        for (arguments, sent) in [
            (region, vec![("mcp-param-region", "eu")]),
            (region, vec![("Mcp-Param-Region", " eu\t")]),
            (region, vec![("Mcp-Param-Region", "=?base64?ZXU=?=")]),
            (
                region,
                vec![("Mcp-Param-Region", "eu"), ("Mcp-Param-Unknown", "1"), ("Mcp-Param-Unknown", "2")],
            ),
            (r#"{"on":false}"#, vec![("mcp-param-on", "false")]),
            (r#"{"region":""}"#, vec![("mcp-param-region", "")]),
            (r#"{"region":{"a":1}}"#, vec![]),
            ("{}", vec![]),
        ] {
            assert_eq!(verdict(Some(arguments), &sent), Ok(()), "{arguments} {sent:?}");
        }
    }

    /// HDR-07, P-HDR-19.
    #[test]
    fn integers_are_compared_by_value_and_exactly() {
        let agree = |argument: &str, header: &str| {
            let arguments = format!(r#"{{"count":{argument}}}"#);
            verdict(Some(&arguments), &[("mcp-param-count", header)]).is_ok()
        };
        for (argument, header) in [
            ("42", "42.0"),
            ("42.0", "42"),
            ("4.2e1", "42"),
            ("4.2e1", "4.2e1"),
            ("123456789012345678901234567890", "123456789012345678901234567890.0"),
            ("1.5", "1.5"),
            ("\"7\"", "7"),
        ] {
            assert!(agree(argument, header), "{argument} {header}");
        }
        for (argument, header) in [
            ("42", "4.2e1"),
            ("42", "042"),
            ("42", "+42"),
            ("9007199254740993", "9007199254740992"),
            ("1.5", "1.50"),
            ("\"7\"", "7.0"),
            ("true", "1"),
        ] {
            assert!(!agree(argument, header), "{argument} {header}");
        }
        let region = verdict(Some(r#"{"region":42}"#), &[("mcp-param-region", "42.0")]);
        assert!(region.is_err(), "only integer properties are compared by value");
    }

    /// HDR-08.
    #[test]
    fn arguments_that_are_not_an_object_are_not_compared() {
        let sent = [("mcp-param-region", "eu")];
        for skipped in ["[]", "7", "\"x\""] {
            assert_eq!(verdict(Some(skipped), &sent), Ok(()));
        }
        assert_eq!(verdict(None, &[]), Ok(()));
        for absent in [None, Some("null")] {
            assert!(verdict(absent, &sent).is_err());
        }
    }

    /// A gateway and a handler must not be able to read two different values (robustness 1.1).
    #[test]
    fn a_repeated_argument_matches_nothing() {
        for arguments in [
            r#"{"region":"eu","region":"us"}"#,
            r#"{"region":"us","\u0072egion":"eu"}"#,
            r#"{"region":"eu","region":null}"#,
        ] {
            assert!(verdict(Some(arguments), &[("mcp-param-region", "eu")]).is_err(), "{arguments}");
            assert!(verdict(Some(arguments), &[]).is_err(), "{arguments}");
            assert!(emitted(arguments).is_empty());
        }
        let nested = r#"{"where":{"zone":"a"},"where":{}}"#;
        assert!(verdict(Some(nested), &[("mcp-param-zone", "a")]).is_err());
    }
}
