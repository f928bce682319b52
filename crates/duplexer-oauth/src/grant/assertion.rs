//! Identity assertions (ID-JAG): the identity provider of a company decides, instead of a consent page.

use std::future::Future;
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_oauth_base::Secret;
use duplexer_oauth_base::fetch::Reach;
use url::Url;

use crate::client::ClientIdentity;
use crate::client::authentication::Form;
use crate::discovery::Discovered;
use crate::discovery::authority::Authority;
use crate::error::OAuthError;
use crate::flow::exchange::TokenEndpoint;
use crate::scope;
use crate::token::Tokens;
use crate::web::{Web, endpoint};

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

/// For whom an assertion is requested.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AssertionRequest {
    /// Issuer of the authorization server that receives the assertion.
    pub audience: String,
    /// The server, as its metadata names it.
    pub resource: Option<String>,
    /// The scopes.
    pub scopes: Vec<String>,
}

type Function = dyn Fn(AssertionRequest) -> BoxFuture<'static, Result<Secret, BoxError>> + Send + Sync;
type IdToken = dyn Fn() -> BoxFuture<'static, Result<Secret, BoxError>> + Send + Sync;

/// A client and where its assertions are from.
pub(crate) struct AssertionGrant {
    pub(crate) client: ClientIdentity,
    pub(crate) source: AssertionSource,
}

pub(crate) enum AssertionSource {
    Provider(IdentityProvider),
    Function(Arc<Function>),
}

impl AssertionSource {
    pub(crate) fn function<F, R>(function: F) -> Self
    where
        F: Fn(AssertionRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Secret, BoxError>> + Send + 'static,
    {
        Self::Function(Arc::new(move |asked| Box::pin(function(asked))))
    }
}

/// Identity provider of a company, at which the user is logged in. It exchanges an ID token for an assertion (RFC 8693).
///
/// ```
/// use duplexer_oauth::{ClientIdentity, IdentityProvider, OAuth, Secret};
///
/// let at_provider = ClientIdentity::public("agent-at-provider");
/// let provider = IdentityProvider::new("https://idp.example.com/token", at_provider, || async {
///     Ok(Secret::new("the ID token of the user"))
/// })
/// .issuer("https://idp.example.com");
/// let at_server = ClientIdentity::public("agent").issuer("https://login.example.com");
/// let login = OAuth::enterprise(provider, at_server).build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone)]
pub struct IdentityProvider {
    issuer: String,
    token_endpoint: String,
    client: ClientIdentity,
    id_token: Arc<IdToken>,
}

impl IdentityProvider {
    /// Creates a provider from its token endpoint, the client there, and a function that gives the current ID token.
    pub fn new<F, R>(token_endpoint: impl Into<String>, client: ClientIdentity, id_token: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Secret, BoxError>> + Send + 'static,
    {
        let token_endpoint = token_endpoint.into();
        let issuer =
            Url::parse(&token_endpoint).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        Self { issuer, token_endpoint, client, id_token: Arc::new(move || Box::pin(id_token())) }
    }

    /// Sets the issuer, which is the audience of a client assertion. The default is the origin of the token endpoint.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = issuer.into();
        self
    }

    /// Returns the URL to which the ID token is sent.
    pub(crate) fn check(&self) -> Result<Url, OAuthError> {
        endpoint(&self.token_endpoint)
    }

    /// Exchanges the ID token of the user for an assertion. `other` is the token endpoint that receives it.
    async fn assertion(
        &self,
        asked: &AssertionRequest,
        other: &TokenEndpoint<'_>,
    ) -> Result<Secret, OAuthError> {
        let id_token = (self.id_token)().await.map_err(OAuthError::source)?;
        let mut form = Form::new(TOKEN_EXCHANGE);
        form.add("requested_token_type", ID_JAG);
        form.add("subject_token", id_token.reveal());
        form.add("subject_token_type", ID_TOKEN);
        form.add("audience", &asked.audience);
        form.add_if("resource", asked.resource.as_deref());
        form.add_if("scope", scope::joined(&asked.scopes).as_deref());
        let client = self.client.resolve(&Authority::default());
        // The application has named the provider, which can be on its private network.
        let web = Web::new(Reach::Any)?;
        let endpoint = TokenEndpoint {
            url: self.check()?,
            issuer: &self.issuer,
            client: &client,
            dpop: None,
            web: &web,
            nonces: other.nonces,
            time: other.time,
        };
        let answer = endpoint.request(&form).await?;
        if answer.issued_token_type.as_deref() != Some(ID_JAG) {
            return Err(OAuthError::answer(&self.token_endpoint, "it is not an identity assertion"));
        }
        Ok(answer.into_assertion())
    }
}

impl std::fmt::Debug for IdentityProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdentityProvider")
            .field("token_endpoint", &self.token_endpoint)
            .finish_non_exhaustive()
    }
}

impl AssertionGrant {
    pub(crate) async fn request(
        &self,
        endpoint: &TokenEndpoint<'_>,
        discovered: &Discovered,
        scopes: &[String],
    ) -> Result<Tokens, OAuthError> {
        let asked = AssertionRequest {
            audience: discovered.authority.issuer.clone(),
            resource: discovered.resource.clone(),
            scopes: scopes.to_vec(),
        };
        let assertion = match &self.source {
            AssertionSource::Provider(provider) => provider.assertion(&asked, endpoint).await?,
            AssertionSource::Function(function) => function(asked).await.map_err(OAuthError::source)?,
        };
        redeem(endpoint, discovered, &assertion, scopes).await
    }
}

/// Exchanges an assertion for a token (RFC 7523).
pub(crate) async fn redeem(
    endpoint: &TokenEndpoint<'_>,
    discovered: &Discovered,
    assertion: &Secret,
    scopes: &[String],
) -> Result<Tokens, OAuthError> {
    let mut form = Form::new(JWT_BEARER);
    form.add("assertion", assertion.reveal());
    form.add_if("resource", discovered.resource.as_deref());
    form.add_if("scope", scope::joined(scopes).as_deref());
    let mut tokens = endpoint.tokens(endpoint.request(&form).await?, scopes)?;
    // The issuer of the assertion decides anew each time.
    tokens.refresh = None;
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use duplexer_oauth_base::clock::Clock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::dpop::nonce::Nonces;

    /// Answers one request with an assertion, and leaves its connection open.
    async fn answer(listener: TcpListener) -> std::convert::Infallible {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !String::from_utf8_lossy(&request).contains("subject_token=id-token") {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).await.unwrap();
            request.extend_from_slice(&buffer[..count]);
        }
        let body =
            format!(r#"{{"access_token":"assertion","issued_token_type":"{ID_JAG}","token_type":"N_A"}}"#);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        std::future::pending().await
    }

    /// OAC-57, OAC-90: a public server cannot name private addresses, but the application can: its provider may be there.
    #[tokio::test]
    async fn a_provider_can_be_on_a_private_network() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        let id_token = || std::future::ready(Ok(Secret::new("id-token")));
        let provider = IdentityProvider::new(&url, ClientIdentity::public("desktop"), id_token);
        let client = ClientIdentity::public("agent").resolve(&Authority::default());
        let (web, nonces, time) = (Web::new(Reach::Public).unwrap(), Nonces::default(), Clock::default());
        let server = TokenEndpoint {
            url: Url::parse("https://login.example.com/token").unwrap(),
            issuer: "https://login.example.com",
            client: &client,
            dpop: None,
            web: &web,
            nonces: &nonces,
            time: &time,
        };
        let asked = AssertionRequest {
            audience: "https://login.example.com".into(),
            resource: None,
            scopes: Vec::new(),
        };
        let assertion = tokio::select! {
            assertion = provider.assertion(&asked, &server) => assertion,
            never = answer(listener) => match never {},
        };
        assert_eq!(assertion.unwrap().reveal(), "assertion");
    }
}
