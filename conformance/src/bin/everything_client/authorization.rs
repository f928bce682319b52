//! How the client is authorized in each scenario: a login with a browser that follows redirects, or a machine grant.

use duplexer::error::BoxError;
use duplexer::oauth::{
    Algorithm, ClientIdentity, Dpop, IdentityProvider, OAuth, OAuthBuilder, Secret, SigningKey,
};
use serde_json::Value;

/// URL of the client metadata document that the suite knows.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

pub(crate) fn of(scenario: &str, context: &Value) -> Result<OAuth, BoxError> {
    let text = |name: &str| context[name].as_str().ok_or(format!("the context has no `{name}`"));
    let secret = |name: &str| text(name).map(Secret::from);
    let builder = match scenario {
        "auth/client-credentials-jwt" => {
            let key = SigningKey::pem(Algorithm::Es256, text("private_key_pem")?)?;
            OAuth::client_credentials(ClientIdentity::private_key_jwt(text("client_id")?, key))
        }
        "auth/client-credentials-basic" => {
            OAuth::client_credentials(ClientIdentity::secret(text("client_id")?, secret("client_secret")?))
        }
        "auth/enterprise-managed-authorization" => {
            let id_token = secret("idp_id_token")?;
            let provider = IdentityProvider::new(
                text("idp_token_endpoint")?,
                ClientIdentity::public(text("idp_client_id")?),
                move || std::future::ready(Ok(id_token.clone())),
            );
            let provider = provider.issuer(text("idp_issuer")?);
            OAuth::enterprise(provider, ClientIdentity::secret(text("client_id")?, secret("client_secret")?))
        }
        "auth/wif-jwt-bearer" => {
            let token = secret("valid_jwt")?;
            OAuth::workload(text("client_id")?, move |_| std::future::ready(Ok(token.clone())))
        }
        "auth/pre-registration" => {
            login().client(ClientIdentity::secret(text("client_id")?, secret("client_secret")?))
        }
        "auth/dpop" | "auth/dpop-nonce" => login().dpop(Dpop::require()),
        _ => login().client(ClientIdentity::document(DOCUMENT)),
    };
    Ok(builder.build()?)
}

/// A login whose browser follows redirects, down to the listener of the client.
fn login() -> OAuthBuilder {
    OAuth::login_with_browser("everything-client").present(|url| async {
        reqwest::get(url).await?.error_for_status()?;
        Ok(None)
    })
}
