//! Token revocation (RFC 7009). The response reveals nothing about tokens of other clients.

use http::{HeaderMap, StatusCode};

use super::AuthorizationServer;
use super::backend::Grant;
use super::form::Form;
use super::store::RecordKind;
use crate::error::OAuthError;
use crate::reply::{self, Reply};

impl AuthorizationServer {
    /// Revokes the grant of an access or refresh token.
    pub(super) async fn revoke(&self, headers: &HeaderMap, body: &[u8]) -> Result<Reply, OAuthError> {
        let form = Form::posted(headers, body)?;
        let client = self.authenticate(headers, &form, "unauthorized_client").await?;
        let token = form.required("token")?;
        let mut kinds = [RecordKind::AccessToken, RecordKind::RefreshToken];
        if form.get("token_type_hint") == Some("refresh_token") {
            kinds.reverse();
        }
        for kind in kinds {
            let Some(id) = self.grant_of(token, kind).await? else { continue };
            let grant: Option<Grant> = self.0.records.get(RecordKind::Grant, &*id).await?;
            if grant.is_some_and(|grant| grant.client_id == client.id()) {
                self.0.records.revoke(&id).await?;
            }
            break;
        }
        Ok(reply::json(StatusCode::OK, &serde_json::Map::new()))
    }
}
