//! Names that the server does not know, and the name that was probably meant.

use duplexer::client::ClientError;
use duplexer::error::CallError;
use duplexer::types::error::ErrorCode;

use super::list::{Kind, names_of};
use crate::failure::Failure;
use crate::session::Session;

/// Minimum similarity of a name that is suggested, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.7;

/// Adds to the failure of a request what the user can do about an unknown name.
pub(super) async fn unknown(session: &Session, error: ClientError, kind: Kind, name: &str) -> Failure {
    let is_unknown = matches!(&error, ClientError::Call(CallError::Rpc(refusal))
        if matches!(refusal.code, ErrorCode::INVALID_PARAMS | ErrorCode::RESOURCE_NOT_FOUND));
    let failure = Failure::from(error);
    if !is_unknown {
        return failure;
    }
    // A server that cannot list its names has no suggestion.
    let names = names_of(kind, session).await.unwrap_or_default();
    if names.iter().any(|known| known == name) {
        return failure;
    }
    failure.hint(&hint(kind, name, &names))
}

/// Returns the hint for a name that is not among `names`.
pub(super) fn hint(kind: Kind, name: &str, names: &[String]) -> String {
    match closest(name, names) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("`duplexer list` shows which {} there are", kind.plural()),
    }
}

/// Returns the most similar name, if one is similar enough.
pub(crate) fn closest<'a>(name: &str, names: &'a [String]) -> Option<&'a str> {
    let similarity = |known: &str| strsim::jaro_winkler(&known.to_lowercase(), &name.to_lowercase());
    names
        .iter()
        .map(|known| (similarity(known), known.as_str()))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_suggested() {
        let names = ["add", "divide", "demo://clock", "world://{country}/capital"].map(str::to_owned);
        let check =
            |name: &str, expected: Option<&str>| assert_eq!(closest(name, &names), expected, "{name}");
        check("ad", Some("add"));
        check("ADD", Some("add"));
        check("devide", Some("divide"));
        check("demo://clok", Some("demo://clock"));
        check("nothing", None);
        check("", None);
        assert_eq!(hint(Kind::Tools, "ad", &names), "did you mean `add`?");
        assert_eq!(hint(Kind::Tools, "x", &[]), "`duplexer list` shows which tools there are");
    }
}
