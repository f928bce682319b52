//! The content security policies of the page and of views.
//!
//! A view gets what its metadata declares and the host accepts, and nothing else. What is not an origin is left out.

use std::fmt::Write as _;

use duplexer_types::app::{OriginUse, check_origin};
use serde::Deserialize;

/// Origins that a view declares (`_meta.ui.csp`).
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_field_names, reason = "the names of the extension")]
pub(crate) struct Declared {
    connect_domains: Vec<String>,
    resource_domains: Vec<String>,
    frame_domains: Vec<String>,
    base_uri_domains: Vec<String>,
}

/// A policy, and what was left out of it.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) text: String,
    pub(crate) ignored: Vec<String>,
}

/// Maximum number of origins of one kind. Further ones are left out.
const MAX_ORIGINS: usize = 50;

/// Pages that can show views: those of this machine. A policy cannot name an IPv6 address.
const HOSTS: &str = "http://127.0.0.1:* http://localhost:*";

/// Returns the policy of the page, which can show frames of the origin `sandbox`.
pub(crate) fn of_page(sandbox: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
         media-src data: blob:; connect-src 'self'; frame-src {sandbox}; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// Returns the policy of the frame around a view: it runs its own script and shows views of its own origin.
pub(crate) fn of_sandbox() -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; frame-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors {HOSTS}"
    )
}

/// Returns the policy of a view, whose violations are reported to `report`.
pub(crate) fn of_view(declared: &Declared, report: &str) -> Policy {
    let mut ignored = Vec::new();
    let mut origins = |kind: &str, declared: &[String], usage| {
        let mut text = String::new();
        for (index, origin) in declared.iter().enumerate() {
            match check_origin(origin, usage) {
                Ok(()) if index < MAX_ORIGINS => {
                    // Writing into memory cannot fail.
                    let _ = write!(text, " {origin}");
                }
                Ok(()) => ignored.push(format!("{kind}: more than {MAX_ORIGINS} origins")),
                Err(reason) => ignored.push(format!("{kind}: {origin:?} {reason}")),
            }
        }
        text
    };
    let resources = origins("resourceDomains", &declared.resource_domains, OriginUse::Resources);
    let connect = origins("connectDomains", &declared.connect_domains, OriginUse::Connections);
    let frames = origins("frameDomains", &declared.frame_domains, OriginUse::Frames);
    let base = origins("baseUriDomains", &declared.base_uri_domains, OriginUse::Base);
    let text = format!(
        "sandbox allow-scripts allow-forms; default-src 'none'; script-src 'unsafe-inline'{resources}; \
         style-src 'unsafe-inline'{resources}; img-src data: blob:{resources}; font-src data:{resources}; \
         media-src data: blob:{resources}; connect-src{}; frame-src{}; base-uri{}; object-src 'none'; \
         form-action 'none'; frame-ancestors {HOSTS}; report-uri {report}",
        or_none(&connect),
        or_none(&frames),
        or_none(&base),
    );
    Policy { text, ignored }
}

fn or_none(origins: &str) -> &str {
    if origins.is_empty() { " 'none'" } else { origins }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(declared: &serde_json::Value) -> Policy {
        of_view(&serde_json::from_value(declared.clone()).unwrap(), "/report/1")
    }

    /// APP-12: the policy is built from the metadata and never wider.
    #[test]
    fn a_view_gets_what_it_declares_and_nothing_else() {
        let bare = policy(&serde_json::json!({}));
        assert!(
            bare.text.contains("connect-src 'none'") && bare.text.contains("frame-src 'none'"),
            "{}",
            bare.text
        );
        assert!(bare.text.contains("default-src 'none'") && bare.text.contains("base-uri 'none'"));
        assert!(!bare.text.contains("allow-same-origin") && !bare.text.contains("allow-top-navigation"));
        let some = policy(&serde_json::json!({
            "connectDomains": ["https://api.example"], "resourceDomains": ["https://*.cdn.example"],
        }));
        assert!(some.text.contains("connect-src https://api.example;"), "{}", some.text);
        assert!(some.text.contains("script-src 'unsafe-inline' https://*.cdn.example;"), "{}", some.text);
        assert!(some.ignored.is_empty());
    }

    #[test]
    fn what_is_no_origin_cannot_widen_a_policy() {
        for hostile in [
            "*",
            "https://a; script-src *",
            "'unsafe-eval'",
            "data:",
            "https://a/ https://b",
            "javascript:1",
            "https:",
        ] {
            let made =
                policy(&serde_json::json!({"connectDomains": [hostile], "resourceDomains": [hostile]}));
            assert_eq!(made.text, policy(&serde_json::json!({})).text, "{hostile}");
            assert_eq!(made.ignored.len(), 2, "{hostile}");
        }
    }
}
