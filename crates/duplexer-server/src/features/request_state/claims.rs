//! The claims that are sealed together with a state: its expiry, its request, its audience and its principal.

use std::borrow::Cow;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duplexer_types::methods::Method;
use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::canonical::canonical;
use super::params::Occurrence;
use duplexer_core::error::BoxError;

const VERSION: u64 = 1;
/// Maximum clock skew between instances, in seconds.
const SKEW: f64 = 60.0;
const PRINCIPAL_LABEL: &[u8] = b"mcp/request-state/principal:";
const SALT: usize = 8;
const DIGEST: usize = 16;

/// What a state is bound to. Computed once per round: the binding that opens a state also seals the next one.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) method: Method,
    pub(super) target: String,
    /// Digest of the arguments.
    pub(super) arguments: String,
    /// The canonical text of the principal, if there is one.
    pub(super) principal: Option<String>,
}

impl Binding {
    /// Computes the binding of a request to `method` with these members in its params.
    pub(super) fn new(
        method: Method,
        target: Occurrence<&str>,
        arguments: Occurrence<&str>,
        principal: Option<String>,
    ) -> Result<Self, BoxError> {
        let Occurrence::One(target) = target else { return Err("the request has no single target".into()) };
        let target = serde_json::from_str(target).map_err(|_| "the request's target is not a string")?;
        let arguments = match arguments {
            Occurrence::Absent | Occurrence::One("null") => digest(b"{}"),
            Occurrence::One(text) => digest(&canonical(text)?),
            Occurrence::Several => return Err("the request has arguments twice".into()),
        };
        Ok(Self { method, target, arguments, principal })
    }
}

fn digest(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    URL_SAFE_NO_PAD.encode(digest.first_chunk::<DIGEST>().unwrap_or(&[0; DIGEST]))
}

/// The claims. Their names are short because they travel in every retry.
#[derive(Debug, Serialize, Deserialize)]
struct Claims<'a> {
    v: u64,
    iat: f64,
    exp: f64,
    #[serde(borrow)]
    m: Cow<'a, str>,
    #[serde(borrow)]
    t: Cow<'a, str>,
    #[serde(borrow)]
    a: Cow<'a, str>,
    #[serde(borrow)]
    s: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    aud: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    p: Option<Cow<'a, str>>,
}

/// Serialises the claims of `state`, valid for `ttl` from `now` on.
pub(super) fn write(
    state: &str,
    binding: &Binding,
    audience: &str,
    now: SystemTime,
    ttl: Duration,
) -> Result<Vec<u8>, BoxError> {
    let iat = seconds(now)?;
    let claims = Claims {
        v: VERSION,
        iat,
        exp: iat + ttl.as_secs_f64(),
        m: binding.method.name().into(),
        t: binding.target.as_str().into(),
        a: binding.arguments.as_str().into(),
        s: state.into(),
        aud: Some(audience.into()),
        p: binding.principal.as_deref().map(salted).transpose()?.map(Into::into),
    };
    let mut text = Vec::new();
    claims.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Ascii))?;
    Ok(text)
}

/// Returns the state in the claims `text`, if they are valid for this request at this time.
pub(super) fn read(
    text: &[u8],
    binding: &Binding,
    audience: &str,
    now: SystemTime,
) -> Result<String, BoxError> {
    let now = seconds(now)?;
    let claims: Claims<'_> = serde_json::from_slice(text).map_err(|_| "its claims cannot be read")?;
    let checks = [
        (claims.v == VERSION, "its claims are of an unknown version"),
        (claims.iat <= now + SKEW, "it was sealed in the future"),
        (now < claims.exp, "it has expired"),
        (same(&claims.m, binding.method.name()), "it belongs to another method"),
        (same(&claims.t, &binding.target), "it belongs to another target"),
        (same(&claims.a, &binding.arguments), "it belongs to other arguments"),
        (claims.aud.as_ref().is_some_and(|aud| same(aud, audience)), "it is for another audience"),
        (is_for(claims.p.as_deref(), binding.principal.as_deref()), "it belongs to another principal"),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        Some((_, cause)) => Err((*cause).into()),
        None => Ok(claims.s.into_owned()),
    }
}

fn seconds(time: SystemTime) -> Result<f64, BoxError> {
    Ok(time.duration_since(UNIX_EPOCH)?.as_secs_f64())
}

fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// Returns the claim of a principal. It is salted, so that it reveals nothing to a reader who does not know the
/// principal.
fn salted(principal: &str) -> Result<String, BoxError> {
    let mut salt = [0; SALT];
    getrandom::fill(&mut salt)?;
    Ok(URL_SAFE_NO_PAD.encode(principal_claim(salt, principal)))
}

fn principal_claim(salt: [u8; SALT], principal: &str) -> Vec<u8> {
    let digest: [u8; 32] = Sha256::new()
        .chain_update(PRINCIPAL_LABEL)
        .chain_update(salt)
        .chain_update(principal.as_bytes())
        .finalize()
        .into();
    [&salt[..], digest.get(..DIGEST).unwrap_or_default()].concat()
}

/// Returns whether the claim matches the principal. A state without a principal is valid only for requests without one.
fn is_for(claim: Option<&str>, principal: Option<&str>) -> bool {
    match (claim, principal) {
        (None, None) => true,
        (Some(claim), Some(principal)) => {
            let Ok(claim) = URL_SAFE_NO_PAD.decode(claim) else { return false };
            let Some(salt) = claim.first_chunk::<SALT>() else { return false };
            claim.ct_eq(&principal_claim(*salt, principal)).into()
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Formats compact JSON in ASCII, so that a codec can treat it as any kind of text.
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut units = [0; 2];
        for part in fragment.split_inclusive(|char: char| !char.is_ascii()) {
            let last = part.chars().next_back().filter(|last| !last.is_ascii());
            let plain = part.len() - last.map_or(0, char::len_utf8);
            writer.write_all(part.get(..plain).unwrap_or_default().as_bytes())?;
            for unit in last.iter().flat_map(|last| last.encode_utf16(&mut units).to_vec()) {
                write!(writer, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}
