//! The consent page and the decision of the user.
//!
//! The page holds a handle that is valid for one decision and bound to a cookie of the browser, so that a foreign page
//! cannot submit the form. The page cannot be framed, and texts of the client are escaped.

use std::time::Duration;

use duplexer_oauth_base::Secret;
use duplexer_oauth_base::clock;
use duplexer_types::text::is_invisible;
use http::HeaderMap;
use http::header::{
    CONTENT_SECURITY_POLICY, COOKIE, HeaderValue, ORIGIN, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};
use url::Url;

use super::authorize::{AuthorizationRequest, refusal_pairs};
use super::backend::{Grant, User};
use super::client::RegisteredClient;
use super::form::Form;
use super::records::{Code, Use};
use super::store::RecordKind;
use super::{AuthorizationServer, redirect};
use crate::error::OAuthError;
use crate::reply::{self, Reply};
use crate::secret;
use crate::urls;

/// Time in which the user has to decide.
const CONSENT_TIMEOUT: Duration = Duration::from_secs(600);
/// Time for which a used or expired code is kept, to detect its reuse.
const REUSE_WINDOW: Duration = Duration::from_secs(600);
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// An authorization request that waits for the decision of the user.
#[derive(Serialize, Deserialize)]
struct PendingConsent {
    wanted: AuthorizationRequest,
    subject: String,
    /// Digest of the browser's cookie.
    browser: String,
}

impl AuthorizationServer {
    /// Stores the pending request and renders the page.
    pub(super) async fn ask(
        &self,
        parts: &Parts,
        client: &RegisteredClient,
        user: &User,
        wanted: AuthorizationRequest,
    ) -> Result<Reply, OAuthError> {
        let (handle, browser) =
            (secret::token()?, self.browser(&parts.headers).map_or_else(secret::token, Ok)?);
        let page = self.page(client, user, &wanted, &handle);
        let policy = policy(&wanted.redirect);
        let open = PendingConsent { wanted, subject: user.subject.clone(), browser: browser.digest() };
        let until = self.after(CONSENT_TIMEOUT);
        self.0.records.put_evictable(RecordKind::Request, handle.digest(), &open, until).await?;
        let mut reply = reply::with_body(StatusCode::OK, HTML, page);
        reply::with_header(&mut reply, CONTENT_SECURITY_POLICY, &policy);
        reply::with_header(&mut reply, X_FRAME_OPTIONS, "DENY");
        reply::with_header(&mut reply, X_CONTENT_TYPE_OPTIONS, "nosniff");
        reply::with_header(&mut reply, REFERRER_POLICY, "no-referrer");
        reply::with_header(&mut reply, SET_COOKIE, &self.cookie(&browser));
        Ok(reply)
    }

    /// Handles the submitted decision.
    pub(super) async fn decide(&self, parts: &Parts, body: &[u8]) -> Reply {
        reply::no_store(self.decided(parts, body).await.unwrap_or_else(|refusal| refusal))
    }

    async fn decided(&self, parts: &Parts, body: &[u8]) -> Result<Reply, Reply> {
        let here = |error: OAuthError| reply::error(&error);
        self.check_host(parts).map_err(here)?;
        self.check_sender(&parts.headers).map_err(here)?;
        let form = Form::posted(&parts.headers, body).map_err(here)?;
        let handle = form.required("request").map_err(here)?;
        let user = self.0.records.0.user(parts).await?;
        let open: PendingConsent = self
            .0
            .records
            .take(RecordKind::Request, secret::digest(handle))
            .await
            .map_err(here)?
            .ok_or_else(|| here(OAuthError::invalid_request("this page has been used or is too old")))?;
        let is_same_browser = self
            .browser(&parts.headers)
            .is_some_and(|cookie| secret::matches(cookie.reveal(), &open.browser));
        if !is_same_browser || user.subject != open.subject {
            return Err(here(OAuthError::invalid_request("this page was shown to another browser or user")));
        }
        let PendingConsent { wanted, .. } = open;
        let (redirect, state) = (wanted.redirect.clone(), wanted.state.clone());
        let back = |pairs: &[(&str, &str)]| self.redirected(&redirect, state.as_deref(), pairs);
        if form.get("decision") != Some("allow") {
            return Ok(back(&[("error", "access_denied"), ("error_description", "the user has declined")]));
        }
        match self.code(wanted, user).await {
            Ok(code) => Ok(back(&[("code", code.reveal())])),
            Err(error) => Err(back(&refusal_pairs(&error))),
        }
    }

    /// Checks the origin of the form, which browsers send.
    fn check_sender(&self, headers: &HeaderMap) -> Result<(), OAuthError> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let is_ours = text(ORIGIN).is_none_or(|origin| {
            // A page without a referrer has an opaque origin; the cookie and the handle protect the form then.
            origin == urls::origin(&self.0.issuer.url) || origin == "null"
        });
        let is_same_site = text(FETCH_SITE).is_none_or(|site| matches!(site, "same-origin" | "none"));
        if is_ours && is_same_site {
            return Ok(());
        }
        Err(OAuthError::invalid_request("this form was sent from elsewhere")
            .with_status(StatusCode::FORBIDDEN))
    }

    /// Stores a grant and returns the code for it.
    pub(super) async fn code(&self, wanted: AuthorizationRequest, user: User) -> Result<Secret, OAuthError> {
        let (grant_id, code) = (secret::random_hex::<16>()?, secret::token()?);
        let lifetime = self.0.settings.lifetimes.code;
        let grant =
            Grant { client_id: wanted.client_id, user, scopes: wanted.scopes, resource: wanted.resource };
        let until = self.after(lifetime.saturating_add(REUSE_WINDOW));
        self.0.records.put(RecordKind::Grant, &*grant_id, &grant, until).await?;
        let record = Code {
            grant: grant_id,
            redirect_uri: wanted.redirect_given,
            challenge: wanted.challenge,
            expires_at: clock::seconds(self.after(lifetime)),
            state: Use::Open,
        };
        self.0.records.put(RecordKind::Code, code.digest(), &record, until).await?;
        Ok(code)
    }

    /// Over https the name has the `__Host-` prefix, which other hosts cannot set.
    fn cookie_name(&self) -> &'static str {
        match self.0.issuer.url.scheme() {
            "https" => "__Host-duplexer-consent",
            _ => "duplexer-consent",
        }
    }

    fn cookie(&self, browser: &Secret) -> String {
        let secure = if self.0.issuer.url.scheme() == "https" { "; Secure" } else { "" };
        let (name, age) = (self.cookie_name(), CONSENT_TIMEOUT.as_secs());
        format!("{name}={}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}", browser.reveal())
    }

    /// Returns the consent cookie of the browser, if it is well-formed.
    fn browser(&self, headers: &HeaderMap) -> Option<Secret> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == self.cookie_name())?;
        let is_ours = value.len() == 43
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        is_ours.then(|| Secret::new(value))
    }

    fn page(
        &self,
        client: &RegisteredClient,
        user: &User,
        wanted: &AuthorizationRequest,
        handle: &Secret,
    ) -> String {
        let name = client.metadata().client_name.as_deref().filter(|name| !is_blank(name));
        let name = name.unwrap_or(client.id());
        let items: Vec<String> = wanted.scopes.iter().map(|scope| escaped(scope)).collect();
        let scopes =
            if items.is_empty() { "nothing in particular".to_owned() } else { items.join("</li><li>") };
        let vouched = if client.is_documented() {
            format!("It is described at <b>{}</b>.", escaped(client.id()))
        } else {
            "The identity of this client is not verified.".to_owned()
        };
        format!(
            include_str!("consent.html"),
            name = escaped(name),
            vouched = vouched,
            resource = escaped(&wanted.resource),
            user = escaped(&user.subject),
            scopes = scopes,
            target = escaped(&target(&wanted.redirect)),
            action = escaped(&self.0.issuer.at("authorize/consent")),
            handle = escaped(handle.reveal()),
        )
    }
}

/// Returns the origin of the redirect target, which the page shows.
fn target(redirect: &str) -> String {
    Url::parse(redirect).map(|url| urls::origin(&url)).unwrap_or_default()
}

/// Content security policy: no scripts, images or frames. The form is sent here, and redirected to the client.
///
/// A stored redirect that could add a directive or a wildcard to the policy is left out.
fn policy(redirect: &str) -> String {
    let mut policy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; \
                      form-action 'self'"
            .to_owned();
    if Url::parse(redirect).is_ok_and(|url| redirect::has_plain_host(&url)) {
        policy.push(' ');
        policy.push_str(&target(redirect));
    }
    policy
}

/// Escapes a text for element content and for quoted attributes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // They select a variant of the character before them, as in emoji.
            character if is_variation_selector(character) => {}
            // These would change the direction or the line breaks of the surrounding text, or not be seen.
            character if character.is_control() || is_invisible(character) => safe.push('\u{fffd}'),
            character => safe.push(character),
        }
    }
    safe
}

/// Returns whether nothing of a text would be seen.
fn is_blank(text: &str) -> bool {
    text.chars().all(|character| {
        character.is_whitespace()
            || character.is_control()
            || is_invisible(character)
            || is_variation_selector(character)
    })
}

fn is_variation_selector(character: char) -> bool {
    matches!(character, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup() {
        let text = escaped("<a href=\"x\" onclick='y'>&\u{202e}\n");
        assert_eq!(text, "&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;\u{fffd}\u{fffd}");
    }

    /// O-invisible
    #[test]
    fn invisible_characters_are_shown_as_such() {
        for invisible in [
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{180e}',
            '\u{200b}',
            '\u{2066}',
            '\u{2800}',
            '\u{3164}',
            '\u{ffa0}',
            '\u{fffa}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0061}',
        ] {
            assert_eq!(escaped(&format!("a{invisible}b")), "a\u{fffd}b", "{invisible:?}");
        }
        assert_eq!(
            escaped("\u{2764}\u{fe0f} caf\u{e9}"),
            "\u{2764} caf\u{e9}",
            "variants look like their base"
        );
    }

    /// O-csp
    #[test]
    fn a_redirect_adds_no_directive_to_the_policy() {
        let action = |redirect: &str| policy(redirect).split_once("form-action ").unwrap().1.to_owned();
        assert_eq!(action("https://client.example:8443/cb"), "'self' https://client.example:8443");
        assert_eq!(action("http://[::1]:1/cb"), "'self' http://[::1]:1");
        for redirect in ["https://a;sandbox/cb", "https://a,sandbox/cb", "https://*/cb", "https://a'b/cb"] {
            assert_eq!(action(redirect), "'self'", "{redirect}");
        }
    }
}
