//! Client credentials (RFC 6749, section 4.4): the client acts for itself.

use crate::client::authentication::Form;
use crate::discovery::Discovered;
use crate::error::OAuthError;
use crate::flow::exchange::TokenEndpoint;
use crate::scope;
use crate::token::Tokens;

pub(crate) async fn request(
    endpoint: &TokenEndpoint<'_>,
    discovered: &Discovered,
    scopes: &[String],
) -> Result<Tokens, OAuthError> {
    let mut form = Form::new("client_credentials");
    form.add_if("resource", discovered.resource.as_deref());
    form.add_if("scope", scope::joined(scopes).as_deref());
    let mut tokens = endpoint.tokens(endpoint.request(&form).await?, scopes)?;
    // Another token is requested like the first (OAC-54).
    tokens.refresh = None;
    Ok(tokens)
}
