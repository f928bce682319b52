//! Scopes: which ones a login requests, and how they are combined.

/// Joins scopes to a parameter, or `None` if there are none: an empty parameter would be an error.
pub(crate) fn joined(scopes: &[String]) -> Option<String> {
    (!scopes.is_empty()).then(|| scopes.join(" "))
}

pub(crate) fn split(text: &str) -> Vec<String> {
    union([text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>().as_slice()])
}

/// Returns all scopes in order, the first of equal ones.
pub(crate) fn union<'a>(lists: impl IntoIterator<Item = &'a [String]>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for scope in lists.into_iter().flatten() {
        if !all.contains(scope) {
            all.push(scope.clone());
        }
    }
    all
}

/// Returns whether `granted` has every scope of `required`.
pub(crate) fn covers(granted: &[String], required: &[String]) -> bool {
    required.iter().all(|scope| granted.contains(scope))
}

/// Returns the scopes of a first login (OAC-29, OAC-30): those of the challenge, or else those that the server
/// publishes; the configured ones in addition.
pub(crate) fn initial(challenged: &[String], published: &[String], configured: &[String]) -> Vec<String> {
    let named = if challenged.is_empty() { published } else { challenged };
    union([named, configured])
}

/// Scope that requests a refresh token.
pub(crate) const OFFLINE_ACCESS: &str = "offline_access";

/// Adds `offline_access` if the authorization server has it and scopes are requested at all (OAC-31).
pub(crate) fn with_offline_access(mut scopes: Vec<String>, supported: &[String]) -> Vec<String> {
    let has = |list: &[String]| list.iter().any(|scope| scope == OFFLINE_ACCESS);
    if !scopes.is_empty() && has(supported) && !has(&scopes) {
        scopes.push(OFFLINE_ACCESS.to_owned());
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        split(text)
    }

    /// OAC-29, OAC-30, P-AUC-9
    #[test]
    fn a_first_login_requests_what_the_challenge_names_or_else_what_is_published() {
        assert_eq!(initial(&list("a"), &list("b c"), &[]), list("a"));
        assert_eq!(initial(&[], &list("b c"), &list("c d")), list("b c d"));
        assert_eq!(initial(&[], &[], &list("d")), list("d"));
        assert_eq!(joined(&initial(&[], &[], &[])), None);
    }

    /// OAC-31, P-AUC-13
    #[test]
    fn offline_access_is_requested_only_where_it_exists() {
        assert_eq!(with_offline_access(list("a"), &list("x offline_access")), list("a offline_access"));
        assert_eq!(with_offline_access(list("a"), &list("x")), list("a"));
        assert_eq!(with_offline_access(list(""), &list("offline_access")), list(""));
        assert_eq!(
            with_offline_access(list("offline_access a"), &list("offline_access")),
            list("offline_access a")
        );
    }

    /// OAC-50
    #[test]
    fn a_union_keeps_the_order_and_no_repetition() {
        assert_eq!(union([list("a b").as_slice(), &list("b c"), &list("a")]), list("a b c"));
        assert!(covers(&list("a b"), &list("b")) && !covers(&list("a"), &list("a b")) && covers(&[], &[]));
    }
}
