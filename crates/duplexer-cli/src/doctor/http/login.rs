//! The chain of a login: the refusal, the metadata of the resource, and the metadata of its authorization server.

use std::time::Duration;

use duplexer::types::text::shown;
use duplexer_oauth_base::address::{self, is_protected};
use duplexer_oauth_base::fetch::{self, Fetcher, Reach, is_public_host};
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use serde_json::{Value, json};
use url::Url;

use super::super::USER_AGENT;
use super::super::messages::brief;
use super::super::report::Report;
use super::super::rules;
use super::wire::{Reply, Wire};
use super::{Method, envelope_post};

/// Maximum bytes of a document.
const MAX_DOCUMENT: usize = 1024 * 1024;
/// Maximum time of one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum authorization servers that are checked.
const MAX_AUTHORITIES: usize = 4;
/// Endpoints of an authorization server.
const ENDPOINTS: [&str; 3] = ["authorization_endpoint", "token_endpoint", "registration_endpoint"];

/// A server that was reached with a token: looks at its refusal of requests without one.
pub(super) async fn check_open(wire: &Wire, url: &Url, report: &mut Report) {
    let discovery = envelope_post(url, &json!("login"), Some(Method::ServerDiscover), json!({}));
    if let Ok(reply) = wire.without(AUTHORIZATION).send(discovery).await
        && reply.status == StatusCode::UNAUTHORIZED
    {
        check(url, &reply, report).await;
    }
}

/// Checks the chain that begins with a refusal.
pub(super) async fn check(url: &Url, refusal: &Reply, report: &mut Report) {
    let challenges: Vec<&str> =
        refusal.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()).collect();
    let is_bearer = |challenge: &&str| {
        let scheme = challenge.split_whitespace().next().unwrap_or_default();
        ["bearer", "dpop"].contains(&scheme.to_ascii_lowercase().as_str())
    };
    report.expect(rules::CHALLENGE, challenges.iter().any(is_bearer), || match challenges.first() {
        Some(other) => format!("401 with `WWW-Authenticate: {}`", shown(other)),
        None => "401 without WWW-Authenticate".to_owned(),
    });
    // A server of the public network must not send this program into a private one.
    let reach = if is_public_host(url).await { Reach::Public } else { Reach::Any };
    let Ok(fetcher) = Fetcher::build(fetch::builder(USER_AGENT).timeout(TIMEOUT), reach) else { return };
    let named = challenges.iter().find_map(|challenge| parameter(challenge, "resource_metadata"));
    let Some((at, document)) = resource_metadata(&fetcher, url, named.as_deref(), report).await else {
        return;
    };
    resource(url, &at, &document, report);
    authorities(&fetcher, &document, report).await;
}

/// Returns the value of a parameter of a challenge.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let lower = challenge.to_ascii_lowercase();
    let at = lower.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = lower.get(..*at).and_then(|text| text.chars().next_back());
        before.is_none_or(|c| c == ' ' || c == ',')
    })?;
    let value = challenge.get(at + name.len()..)?.trim_start().strip_prefix('=')?.trim_start();
    match value.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map(|(value, _)| value.to_owned()),
        None => Some(value.split([',', ' ']).next().unwrap_or_default().to_owned()),
    }
}

/// Finds the metadata of the resource: where the challenge says, or at the well-known paths.
async fn resource_metadata(
    fetcher: &Fetcher,
    url: &Url,
    named: Option<&str>,
    report: &mut Report,
) -> Option<(Url, Value)> {
    if let Some(named) = named {
        let Ok(at) = Url::parse(named) else {
            report.find(
                rules::METADATA_LINK,
                format!("the challenge names `{}`, which is no URL", shown(named)),
            );
            return None;
        };
        return match document(fetcher, &at, report).await {
            Ok(found) => {
                report.pass(rules::METADATA_LINK);
                report.pass(rules::RESOURCE_METADATA);
                Some((at, found))
            }
            Err(reason) => {
                report.find(rules::METADATA_LINK, format!("{at}: {reason}"));
                None
            }
        };
    }
    let mut reasons = Vec::new();
    for at in well_known(url, "oauth-protected-resource") {
        match document(fetcher, &at, report).await {
            Ok(found) => {
                report.pass(rules::RESOURCE_METADATA);
                return Some((at, found));
            }
            Err(reason) => reasons.push(format!("{at}: {reason}")),
        }
    }
    let what = format!("the challenge names no metadata; {}", reasons.join("; "));
    report.find(rules::RESOURCE_METADATA, what);
    None
}

/// Returns the well-known URLs of a document: that of the path, and that of the host.
fn well_known(url: &Url, name: &str) -> Vec<Url> {
    let mut paths = vec![address::well_known(name, url), format!("/.well-known/{name}")];
    paths.dedup();
    let at = |path: &String| {
        let mut at = url.clone();
        at.set_path(path);
        at.set_query(None);
        at.set_fragment(None);
        at
    };
    paths.iter().map(at).collect()
}

/// Fetches a JSON document.
async fn document(fetcher: &Fetcher, at: &Url, report: &mut Report) -> Result<Value, String> {
    report.expect(rules::PROTECTED, is_protected(at), || format!("{at} has no TLS"));
    let request = fetcher.get(at).map_err(|error| error.to_string())?;
    let answer = fetch::answer(request.header("accept", "application/json"), MAX_DOCUMENT).await;
    let answer = answer.map_err(|error| error.to_string())?;
    if !(200..300).contains(&answer.status) {
        return Err(format!("status {}", answer.status));
    }
    let found: Value = serde_json::from_slice(&answer.body).map_err(|error| format!("no JSON ({error})"))?;
    if found.is_object() { Ok(found) } else { Err("not an object".to_owned()) }
}

/// Checks that the metadata is about the server.
fn resource(url: &Url, at: &Url, document: &Value, report: &mut Report) {
    let named = document.get("resource").and_then(Value::as_str).and_then(|text| Url::parse(text).ok());
    let is_about = named.as_ref().is_some_and(|named| {
        let (whole, part) = (url.path().trim_end_matches('/'), named.path().trim_end_matches('/'));
        let is_below = whole.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        named.origin() == url.origin() && is_below
    });
    report.expect(rules::RESOURCE, is_about, || {
        let named = document.get("resource").unwrap_or(&Value::Null);
        format!("{at} has the resource {}, and the server is {url}", brief(named))
    });
}

async fn authorities(fetcher: &Fetcher, document: &Value, report: &mut Report) {
    let empty = Vec::new();
    let listed = document.get("authorization_servers").and_then(Value::as_array).unwrap_or(&empty);
    let issuers: Vec<&str> = listed.iter().filter_map(Value::as_str).take(MAX_AUTHORITIES).collect();
    if issuers.is_empty() {
        report.find(rules::AUTHORITY, "the metadata of the resource lists no authorization_servers");
    }
    for issuer in issuers {
        authority(fetcher, issuer, report).await;
    }
}

async fn authority(fetcher: &Fetcher, issuer: &str, report: &mut Report) {
    let Ok(url) = Url::parse(issuer) else {
        report.find(rules::AUTHORITY, format!("the authorization server `{}` is no URL", shown(issuer)));
        return;
    };
    let mut reasons = Vec::new();
    for at in metadata_urls(&url) {
        match document(fetcher, &at, report).await {
            Ok(found) => {
                report.pass(rules::AUTHORITY);
                return metadata(issuer, &at, &found, report);
            }
            Err(reason) => reasons.push(format!("{at}: {reason}")),
        }
    }
    report.find(rules::AUTHORITY, reasons.join("; "));
}

/// Returns the URLs of the metadata of an authorization server, in the order of the specification.
fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    let at = |path: &String| {
        let mut at = issuer.clone();
        at.set_path(path);
        at.set_query(None);
        at
    };
    paths.iter().map(at).collect()
}

/// Checks the metadata of an authorization server.
fn metadata(issuer: &str, at: &Url, document: &Value, report: &mut Report) {
    let named = document.get("issuer").and_then(Value::as_str);
    report.expect(rules::ISSUER, named == Some(issuer), || {
        let named = document.get("issuer").unwrap_or(&Value::Null);
        format!("{at} has the issuer {}, and the resource names `{}`", brief(named), shown(issuer))
    });
    let methods = document.get("code_challenge_methods_supported").and_then(Value::as_array);
    let has_s256 = methods.is_some_and(|methods| methods.iter().any(|method| method == "S256"));
    report.expect(rules::PKCE, has_s256, || {
        let methods = document.get("code_challenge_methods_supported").unwrap_or(&Value::Null);
        format!("{at} has code_challenge_methods_supported {}", brief(methods))
    });
    let by_document = document.get("client_id_metadata_document_supported") == Some(&Value::Bool(true));
    let by_request = document.get("registration_endpoint").is_some_and(Value::is_string);
    report.expect(rules::REGISTRATION, by_document || by_request, || {
        format!("{at} has neither registration_endpoint nor client_id_metadata_document_supported")
    });
    for name in ENDPOINTS {
        if let Some(endpoint) = document.get(name).and_then(Value::as_str) {
            let is_sound = Url::parse(endpoint).is_ok_and(|url| is_protected(&url));
            report.expect(rules::PROTECTED, is_sound, || format!("{name} is `{}`", shown(endpoint)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_of_a_challenge_is_found() {
        let check = |challenge: &str, expected: Option<&str>| {
            assert_eq!(parameter(challenge, "resource_metadata").as_deref(), expected, "{challenge}");
        };
        check(r#"Bearer resource_metadata="https://a/b", scope="x""#, Some("https://a/b"));
        check(r#"Bearer realm="a",Resource_Metadata=https://a/b, x=y"#, Some("https://a/b"));
        check(r#"Bearer my_resource_metadata="no""#, None);
        check("Bearer", None);
        check(r#"Bearer resource_metadata="open"#, None);
    }

    #[test]
    fn documents_are_searched_in_order() {
        let shown = |urls: Vec<Url>| urls.iter().map(|url| url.path().to_owned()).collect::<Vec<_>>();
        let url = |text: &str| Url::parse(text).unwrap();
        assert_eq!(
            shown(well_known(&url("https://a/x/mcp/"), "oauth-protected-resource")),
            ["/.well-known/oauth-protected-resource/x/mcp", "/.well-known/oauth-protected-resource"]
        );
        assert_eq!(
            shown(metadata_urls(&url("https://a/t"))),
            [
                "/.well-known/oauth-authorization-server/t",
                "/.well-known/openid-configuration/t",
                "/t/.well-known/openid-configuration"
            ]
        );
        assert_eq!(shown(metadata_urls(&url("https://a"))).len(), 2);
    }
}
