//! Assertions of an identity provider (ID-JAG), and where its tokens and secrets are sent.

use duplexer_oauth::{ClientIdentity, IdentityProvider, OAuth, OAuthBuilder, OAuthError, Secret};
use serde_json::json;

use crate::mock::{Mock, Seen, answer};
use crate::site::{connect, tool};

const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// An identity provider whose answer has these types.
async fn provider(issued: &'static str) -> Mock {
    Mock::new(move |_, seen| {
        let assertion =
            json!({"access_token": "assertion", "issued_token_type": issued, "token_type": "N_A"});
        seen.is("POST", "/token").then(|| answer(200, &assertion))
    })
    .await
}

fn enterprise(provider: &Mock) -> OAuthBuilder {
    let id_token = || std::future::ready(Ok(Secret::new("id-token")));
    let endpoint = format!("{}/token", provider.base());
    let provider = IdentityProvider::new(endpoint, ClientIdentity::public("desktop"), id_token);
    OAuth::enterprise(provider, ClientIdentity::secret("mcp-client", Secret::new("s")))
}

/// CAUTH-01, OAC-56, P-AUC-22: the ID token is exchanged at the provider, the assertion at the authorization server.
#[tokio::test]
async fn an_id_token_becomes_a_token_of_the_server() {
    let (idp, mock) = (provider(ID_JAG).await, Mock::new(|_, _| None).await);
    let oauth = enterprise(&idp).issuer(mock.base()).scopes(["mcp"]).build().unwrap();
    let client = connect(&mock.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "done");
    let exchange = idp.seen("/token")[0].form();
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", ID_JAG),
        ("subject_token", "id-token"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("audience", mock.base()),
        ("resource", &mock.url()),
        ("scope", "mcp"),
        ("client_id", "desktop"),
    ] {
        assert_eq!(exchange[name], value, "{name}");
    }
    let redeemed = &mock.seen("/token")[0];
    let form = redeemed.form();
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!((form["assertion"].as_str(), form["resource"].as_str()), ("assertion", mock.url().as_str()));
    assert_eq!(redeemed.header("authorization"), "Basic bWNwLWNsaWVudDpz");
    assert!(mock.seen("/register").is_empty() && mock.seen("/authorize").is_empty());
}

/// OAC-56: an answer of another type is not redeemed.
#[tokio::test]
async fn another_kind_of_token_is_not_redeemed() {
    let idp = provider("urn:ietf:params:oauth:token-type:access_token").await;
    let mock = Mock::new(|_, _| None).await;
    let oauth = enterprise(&idp).issuer(mock.base()).build().unwrap();
    assert!(matches!(connect(&mock.url(), &oauth).await, Err(OAuthError::Answer { .. })));
    assert!(mock.seen("/token").is_empty());
}

/// CAUTH-01, OAC-57: without a configured issuer, its assertion and secret go to the issuer's own origin only.
#[tokio::test]
async fn an_assertion_is_not_sent_to_another_origin() {
    let idp = provider(ID_JAG).await;
    let elsewhere = Mock::new(|_, _| None).await;
    let other = format!("{}/token", elsewhere.base());
    let mock = Mock::new(move |mock: &Mock, seen: &Seen| {
        let mut metadata = mock.metadata();
        metadata["token_endpoint"] = json!(other);
        seen.path.contains("authorization-server").then(|| answer(200, &metadata))
    })
    .await;
    let oauth = enterprise(&idp).build().unwrap();
    let refused = connect(&mock.url(), &oauth).await;
    assert!(matches!(refused, Err(OAuthError::Answer { .. })), "{:?}", refused.err());
    assert!(idp.log().is_empty() && elsewhere.log().is_empty());
    let configured = enterprise(&idp).issuer(mock.base()).build().unwrap();
    assert!(connect(&mock.url(), &configured).await.is_ok());
    assert_eq!(elsewhere.seen("/token").len(), 1);
}

/// OAC-57: the assertion can come from a function of the application, which gets audience and resource.
#[tokio::test]
async fn a_function_gives_assertions() {
    let mock = Mock::new(|_, _| None).await;
    let function = |asked: duplexer_oauth::AssertionRequest| {
        let text = format!("{} {}", asked.audience, asked.resource.unwrap_or_default());
        std::future::ready(Ok(Secret::new(text)))
    };
    let client = ClientIdentity::secret("mcp-client", Secret::new("s"));
    let oauth = OAuth::assertion(client, function).build().unwrap();
    assert!(connect(&mock.url(), &oauth).await.is_ok());
    assert_eq!(mock.seen("/token")[0].form()["assertion"], format!("{} {}", mock.base(), mock.url()));
}
