//! A query at the end of a template: in any order, in part, with more than was asked for.

use super::{Value, Values, decoded};

/// Adds the named members of a query. The first of two counts; names are compared as they are written.
pub(super) fn read(names: &[String], query: &str, values: &mut Values) -> Option<()> {
    for member in query.split('&') {
        let (name, value) = member.split_once('=').unwrap_or((member, ""));
        let known = names.iter().any(|known| known == name);
        if known && !values.iter().any(|(seen, _)| seen == name) {
            values.push((name.to_owned(), Value::One(decoded(value)?.into_owned())));
        }
    }
    Some(())
}
