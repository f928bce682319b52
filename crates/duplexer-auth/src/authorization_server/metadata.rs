//! Metadata of the authorization server (RFC 8414).

use serde::Serialize;

use super::client::{AUTHORIZATION_CODE, CLIENT_CREDENTIALS, JWT_BEARER, REFRESH_TOKEN};
use super::{AuthorizationServer, IssParameter, Registration};
use crate::dpop;

const ID_JAG: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
const AUTH_METHODS: [&str; 4] = ["client_secret_post", "client_secret_basic", "none", "private_key_jwt"];

#[derive(Serialize)]
pub(super) struct Metadata<'a> {
    issuer: &'a str,
    authorization_endpoint: String,
    token_endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    registration_endpoint: Option<String>,
    revocation_endpoint: String,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    scopes_supported: &'a [String],
    response_types_supported: [&'static str; 1],
    grant_types_supported: Vec<&'static str>,
    token_endpoint_auth_methods_supported: [&'static str; 4],
    token_endpoint_auth_signing_alg_values_supported: [&'static str; 5],
    dpop_signing_alg_values_supported: [&'static str; 5],
    revocation_endpoint_auth_methods_supported: [&'static str; 4],
    code_challenge_methods_supported: [&'static str; 1],
    authorization_response_iss_parameter_supported: bool,
    client_id_metadata_document_supported: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    authorization_grant_profiles_supported: Option<[&'static str; 1]>,
}

impl AuthorizationServer {
    pub(super) fn metadata(&self) -> Metadata<'_> {
        let inner = &self.0;
        let has_assertions = inner.assertions.is_some();
        let mut grant_types = vec![AUTHORIZATION_CODE, REFRESH_TOKEN, CLIENT_CREDENTIALS];
        grant_types.extend(has_assertions.then_some(JWT_BEARER));
        let is_open = inner.settings.registration == Registration::Open;
        Metadata {
            issuer: &inner.issuer.text,
            authorization_endpoint: inner.issuer.url_of("authorize"),
            token_endpoint: inner.issuer.url_of("token"),
            registration_endpoint: is_open.then(|| inner.issuer.url_of("register")),
            revocation_endpoint: inner.issuer.url_of("revoke"),
            scopes_supported: &inner.settings.scopes,
            response_types_supported: ["code"],
            grant_types_supported: grant_types,
            token_endpoint_auth_methods_supported: AUTH_METHODS,
            token_endpoint_auth_signing_alg_values_supported: dpop::ALGORITHMS,
            dpop_signing_alg_values_supported: dpop::ALGORITHMS,
            revocation_endpoint_auth_methods_supported: AUTH_METHODS,
            code_challenge_methods_supported: ["S256"],
            authorization_response_iss_parameter_supported: inner.settings.iss == IssParameter::Sent,
            client_id_metadata_document_supported: inner.documents.is_some(),
            authorization_grant_profiles_supported: has_assertions.then_some([ID_JAG]),
        }
    }
}
