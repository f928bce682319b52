//! Client metadata documents, and the body of a registration (RFC 7591), which has the same members.

use serde_json::{Map, Value, json};

use super::authentication::Method;

/// Description of this client: the body of a registration, or the document at the URL that is its id.
///
/// ```
/// use duplexer_oauth::ClientDocument;
///
/// let url = "https://app.example.com/client.json";
/// let document = ClientDocument::new("My program").member("client_uri", "https://app.example.com");
/// let json = document.to_json(url, &["http://127.0.0.1/callback"]);
/// assert_eq!(json["client_id"], url);
/// ```
#[derive(Clone, Debug)]
pub struct ClientDocument {
    members: Map<String, Value>,
}

impl ClientDocument {
    /// Describes a client by its name.
    pub fn new(name: impl Into<String>) -> Self {
        let mut members = Map::new();
        members.insert("client_name".into(), name.into().into());
        Self { members }
    }

    /// Sets a member of RFC 7591, such as `client_uri`, `logo_uri`, `contacts`, `software_id` or `software_version`.
    #[must_use]
    pub fn member(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.members.insert(name.into(), value.into());
        self
    }

    /// Renders the document that is served at the URL of the client.
    pub fn to_json(&self, url: &str, redirect_uris: &[&str]) -> Value {
        let mut document = self.body(Method::None, redirect_uris);
        document.insert("client_id".into(), url.into());
        Value::Object(document)
    }

    /// Returns the members of a client with these redirect URIs.
    pub(super) fn body(&self, method: Method, redirect_uris: &[&str]) -> Map<String, Value> {
        let mut body = self.members.clone();
        let mut set = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
        set("redirect_uris", json!(redirect_uris));
        set("grant_types", json!(["authorization_code", "refresh_token"]));
        set("response_types", json!(["code"]));
        set("token_endpoint_auth_method", method.name().into());
        set("application_type", application_type(redirect_uris).into());
        body
    }
}

/// A client is native if its redirect stays on the machine of the user.
fn application_type(redirect_uris: &[&str]) -> &'static str {
    let is_web = |uri: &&str| uri.starts_with("https://");
    if !redirect_uris.is_empty() && redirect_uris.iter().all(is_web) { "web" } else { "native" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-24, OAC-25
    #[test]
    fn a_document_has_the_members_of_a_registration() {
        let document = ClientDocument::new("Notes").member("client_uri", "https://notes.example");
        let json = document.to_json("https://notes.example/client.json", &["http://127.0.0.1/callback"]);
        assert_eq!(
            json,
            json!({
                "client_id": "https://notes.example/client.json",
                "client_name": "Notes",
                "client_uri": "https://notes.example",
                "redirect_uris": ["http://127.0.0.1/callback"],
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "token_endpoint_auth_method": "none",
                "application_type": "native",
            })
        );
        let web = document.body(Method::Basic, &["https://notes.example/cb"]);
        assert_eq!(
            (&web["application_type"], &web["token_endpoint_auth_method"]),
            (&json!("web"), &json!("client_secret_basic"))
        );
    }
}
