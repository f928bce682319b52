//! Protected resource metadata (RFC 9728).

use duplexer_oauth_base::address::{origin, well_known};
use duplexer_types::text::shown;
use serde::Deserialize;
use url::Url;

use super::or_default;
use crate::challenge::Challenge;
use crate::error::OAuthError;
use crate::web::{Document, Web};

const MAX_DOCUMENT: usize = 64 * 1024;
const NAME: &str = "oauth-protected-resource";

/// What a server publishes about itself.
#[derive(Clone, Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of RFC 9728")]
pub(crate) struct Resource {
    /// Verbatim: the authorization server compares it as text.
    pub(crate) resource: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) authorization_servers: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) scopes_supported: Vec<String>,
}

/// Fetches the metadata of a server. `None` if the server has none at all: it implements 2025-03-26.
pub(crate) async fn fetch(
    web: &Web,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<Resource>, OAuthError> {
    let mut failure = None;
    for url in candidates(server, challenge)? {
        match web.document(&url, MAX_DOCUMENT).await? {
            Document::Absent => {}
            Document::Refused(status) => {
                failure.get_or_insert(OAuthError::answer(url.as_str(), format!("status {status}")));
            }
            Document::Found(body) => {
                if let Ok(resource) = serde_json::from_slice::<Resource>(&body) {
                    return check(server, resource).map(Some);
                }
                let reason = "it is not the metadata of a protected resource";
                failure.get_or_insert(OAuthError::answer(url.as_str(), reason));
            }
        }
    }
    // Only a server without any metadata is treated as an old one, so that a disturbed discovery does not select that.
    failure.map_or(Ok(None), Err)
}

/// Returns the URLs to try, in order (OAC-11). A URL of the challenge must be on the origin of the server (OAC-12).
fn candidates(server: &Url, challenge: &Challenge) -> Result<Vec<Url>, OAuthError> {
    let mut urls = Vec::new();
    if let Some(text) = challenge.parameter("resource_metadata") {
        let named = server.join(text).ok().filter(|url| url.origin() == server.origin());
        let foreign = || OAuthError::answer(server.as_str(), format!("its metadata is at '{}'", shown(text)));
        urls.push(named.ok_or_else(foreign)?);
    }
    let origin = origin(server);
    for path in [well_known(NAME, server), format!("/.well-known/{NAME}")] {
        if let Ok(url) = Url::parse(&format!("{origin}{path}"))
            && !urls.contains(&url)
        {
            urls.push(url);
        }
    }
    Ok(urls)
}

/// Checks that the metadata is about the server: the same origin, and a path that contains that of the server (OAC-13).
fn check(server: &Url, resource: Resource) -> Result<Resource, OAuthError> {
    let mismatch = || OAuthError::ResourceMismatch {
        server: shown(server.as_str()),
        published: shown(&resource.resource),
    };
    let published = Url::parse(&resource.resource).map_err(|_| mismatch())?;
    let prefix = published.path().trim_end_matches('/');
    let contains =
        server.path().strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let fits = published.origin() == server.origin()
        && published.fragment().is_none()
        && published.username().is_empty()
        && contains;
    if fits { Ok(resource) } else { Err(mismatch()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// OAC-11, OAC-12
    #[test]
    fn metadata_is_looked_for_where_the_challenge_says_then_at_the_path_then_at_the_root() {
        let texts = |server: &str, challenge: &str| -> Option<Vec<String>> {
            let challenge = Challenge::select([challenge]);
            Some(candidates(&url(server), &challenge).ok()?.into_iter().map(String::from).collect())
        };
        let root = "https://h/.well-known/oauth-protected-resource";
        let path = "https://h/.well-known/oauth-protected-resource/mcp";
        assert_eq!(texts("https://h/mcp?x=1", ""), Some(vec![path.into(), root.into()]));
        assert_eq!(texts("https://h/", ""), Some(vec![root.into()]));
        let hint = r#"Bearer resource_metadata="https://h/custom""#;
        assert_eq!(
            texts("https://h/mcp", hint),
            Some(vec!["https://h/custom".into(), path.into(), root.into()])
        );
        for foreign in ["https://evil/m", "http://h/m", "https://h:8443/m", "https://h.evil/", "//evil/"] {
            let hint = format!("Bearer resource_metadata=\"{foreign}\"");
            assert_eq!(texts("https://h/mcp", &hint), None, "{foreign}");
        }
    }

    /// OAC-13, OAC-14
    #[test]
    fn metadata_is_about_the_server_and_kept_verbatim() {
        let published = |resource: &str| {
            let resource = Resource {
                resource: resource.to_owned(),
                authorization_servers: Vec::new(),
                scopes_supported: Vec::new(),
            };
            check(&url("https://h/a/mcp"), resource).map(|resource| resource.resource)
        };
        for fine in ["https://h", "https://h/", "https://H:443/a", "https://h/a/", "https://h/a/mcp"] {
            assert_eq!(published(fine).ok().as_deref(), Some(fine));
        }
        for wrong in [
            "https://evil/a/mcp",
            "http://h/a/mcp",
            "https://h/a/mc",
            "https://h/a/mcp/x",
            "https://h/b",
            "https://h:8443",
            "https://h/a#x",
            "https://u@h/a",
            "h",
        ] {
            let refused = matches!(published(wrong), Err(OAuthError::ResourceMismatch { .. }));
            assert!(refused, "{wrong}");
        }
    }
}
