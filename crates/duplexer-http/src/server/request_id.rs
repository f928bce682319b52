//! Request ids: a name for an HTTP request that logs of proxies, services and clients share.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::session::random;

/// The header that carries the id, in both directions.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_LENGTH: usize = 128;

/// Returns the id of a request: its own, or else a random one, which its headers then have too. `None` without randomness.
pub(super) fn of(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let mut sent = headers.get_all(REQUEST_ID).iter();
    if let (Some(id), None) = (sent.next(), sent.next())
        && is_usable(id)
    {
        return Some(id.clone());
    }
    let id = random().and_then(|bits| HeaderValue::try_from(format!("{bits:032x}")).ok());
    match &id {
        Some(id) => headers.insert(REQUEST_ID, id.clone()),
        None => headers.remove(REQUEST_ID),
    };
    id
}

/// Returns whether an id can be logged as it is: short, and of characters that no log format gives a meaning.
fn is_usable(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+/=@".contains(byte);
    (1..=MAX_LENGTH).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usable_id_is_kept_and_any_other_is_replaced() {
        let check = |sent: &[&str], kept: Option<&str>| {
            let mut headers = HeaderMap::new();
            for id in sent {
                headers.append(REQUEST_ID, id.parse().unwrap());
            }
            let id = of(&mut headers).unwrap();
            assert_eq!(headers.get_all(REQUEST_ID).iter().collect::<Vec<_>>(), [&id], "{sent:?}");
            match kept {
                Some(kept) => assert_eq!(id, kept),
                None => assert_eq!((id.len(), sent.contains(&id.to_str().unwrap())), (32, false), "{sent:?}"),
            }
        };
        check(&["req-17.a:b"], Some("req-17.a:b"));
        check(&[], None);
        check(&["a", "b"], None);
        check(&["a b"], None);
        check(&["{}"], None);
        check(&[&"x".repeat(129)], None);
    }
}
