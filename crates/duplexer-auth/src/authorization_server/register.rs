//! Dynamic client registration (RFC 7591).

use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::Value;

use super::client::{AUTHORIZATION_CODE, AuthMethod, ClientMetadata, JWT_BEARER, RegisteredClient};
use super::form::media_type;
use super::store::RecordKind;
use super::{AuthorizationServer, redirect};
use crate::error::OAuthError;
use crate::reply::{self, Reply};
use crate::secret;

const MAX_REDIRECTS: usize = 16;
/// Maximum length of a client name, which the consent page shows.
const MAX_NAME: usize = 200;

/// Maximum size of the members that are returned and not used, as JSON.
const MAX_OTHERS: usize = 2 * 1024;
/// Maximum size of the metadata of a registered client, as JSON.
const MAX_METADATA: usize = 8 * 1024;
const TOO_LARGE: &str = "the metadata is too large: at most 8192 bytes";

/// Registration response: the metadata of the client and its credentials.
#[derive(Serialize)]
struct Registered<'a> {
    client_id: &'a str,
    client_id_issued_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret_expires_at: Option<u64>,
    #[serde(flatten)]
    metadata: &'a ClientMetadata,
}

impl AuthorizationServer {
    pub(super) async fn register(&self, headers: &HeaderMap, body: &[u8]) -> Result<Reply, OAuthError> {
        // A browser sends other media types for any page without a preflight.
        if media_type(headers) != "application/json" {
            let refusal = OAuthError::invalid_request("the body must be application/json");
            return Err(refusal.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let mut metadata =
            read(body).map_err(|error| invalid(format!("the metadata cannot be read: {error}")))?;
        self.check(&metadata)?;
        limit(&mut metadata)?;
        let secret = match metadata.token_endpoint_auth_method {
            AuthMethod::PrivateKeyJwt => {
                return Err(invalid("clients that sign assertions are configured, not registered"));
            }
            AuthMethod::None => None,
            AuthMethod::ClientSecretPost | AuthMethod::ClientSecretBasic => Some(secret::random_hex::<32>()?),
        };
        let client = RegisteredClient::registered(uuid()?, secret.as_deref(), metadata);
        let until = self.after(self.0.settings.lifetimes.client);
        // It becomes a required record with its first tokens.
        self.0.records.put_evictable(RecordKind::Client, client.id(), &client, until).await?;
        let registered = Registered {
            client_id: client.id(),
            client_id_issued_at: self.0.clock.seconds(),
            client_secret_expires_at: secret.is_some().then_some(0),
            client_secret: secret.as_deref(),
            metadata: client.metadata(),
        };
        Ok(reply::json(StatusCode::CREATED, &registered))
    }

    /// Validates client metadata, whatever its origin.
    pub(super) fn check(&self, metadata: &ClientMetadata) -> Result<(), OAuthError> {
        check_metadata(metadata)?;
        let scopes = metadata.scope.iter().flat_map(|scope| scope.split_ascii_whitespace());
        for scope in scopes {
            if !self.0.settings.scopes.iter().any(|known| known == scope) {
                return Err(invalid(format!("scope '{}' does not exist here", scope.escape_debug())));
            }
        }
        Ok(())
    }
}

/// Reads the metadata. A null member is treated as absent.
fn read(body: &[u8]) -> Result<ClientMetadata, serde_json::Error> {
    let mut members: serde_json::Map<String, Value> = serde_json::from_slice(body)?;
    members.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(members))
}

/// Limits the size of a registration: strangers can store one.
fn limit(metadata: &mut ClientMetadata) -> Result<(), OAuthError> {
    // Members without a meaning here can be left out (RFC 7591, section 2).
    if size(&metadata.others) > MAX_OTHERS {
        metadata.others.clear();
    }
    if size(metadata) > MAX_METADATA { Err(invalid(TOO_LARGE)) } else { Ok(()) }
}

/// Returns the length of a value in JSON.
fn size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |text| text.len())
}

fn check_metadata(metadata: &ClientMetadata) -> Result<(), OAuthError> {
    let has = |list: &[String], name: &str| list.iter().any(|entry| entry == name);
    if metadata.redirect_uris.is_empty() || metadata.redirect_uris.len() > MAX_REDIRECTS {
        return Err(invalid("between 1 and 16 redirect_uris are needed"));
    }
    metadata.redirect_uris.iter().try_for_each(|uri| redirect::check(uri))?;
    if !has(&metadata.grant_types, AUTHORIZATION_CODE) {
        return Err(invalid("grant_types must include authorization_code"));
    }
    if has(&metadata.grant_types, JWT_BEARER) {
        return Err(invalid(
            "grant_types must not include jwt-bearer: such clients are configured, not registered",
        ));
    }
    if !has(&metadata.response_types, "code") {
        return Err(invalid("response_types must include code"));
    }
    if metadata.client_name.as_ref().is_some_and(|name| name.chars().count() > MAX_NAME) {
        return Err(invalid("client_name is too long"));
    }
    // A client must not send members that the server assigns: they would appear twice in the response.
    let assigned = ["client_id", "client_secret", "client_id_issued_at", "client_secret_expires_at"];
    if let Some(name) = assigned.into_iter().find(|name| metadata.others.contains_key(*name)) {
        return Err(invalid(format!("{name} is assigned by the server")));
    }
    Ok(())
}

pub(super) fn invalid(description: impl Into<std::borrow::Cow<'static, str>>) -> OAuthError {
    OAuthError::new("invalid_client_metadata", description)
}

/// Generates a random UUID (RFC 9562, version 4).
fn uuid() -> Result<String, OAuthError> {
    let mut bytes = secret::random::<16>()?;
    if let Some(byte) = bytes.get_mut(6) {
        *byte = *byte & 0x0f | 0x40;
    }
    if let Some(byte) = bytes.get_mut(8) {
        *byte = *byte & 0x3f | 0x80;
    }
    let number = u128::from_be_bytes(bytes);
    let text = format!("{number:032x}");
    let parts =
        [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| text.get(range).unwrap_or_default().to_owned());
    Ok(parts.join("-"))
}

/// Returns whether a metadata document contains a secret, which is not allowed.
pub(super) fn has_secret_members(metadata: &ClientMetadata) -> bool {
    let has = |name: &str| metadata.others.get(name).is_some_and(|value| *value != Value::Null);
    has("client_secret") || has("client_secret_expires_at")
}
