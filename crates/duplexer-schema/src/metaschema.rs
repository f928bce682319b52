//! The 2020-12 metaschema: the only documents that a schema can refer to without registering them.

use std::sync::{LazyLock, OnceLock};

use serde_json::Value;

use crate::error::CompileError;
use crate::schema::Schema;

/// URI of the dialect that this crate reads.
pub(crate) const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// URIs of the vocabularies begin so.
pub(crate) const VOCABULARY: &str = "https://json-schema.org/draft/2020-12/vocab/";

static DOCUMENTS: LazyLock<Vec<Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("metaschema.json")).unwrap_or_default());

/// Returns the document that the metaschema has under `uri`.
pub(crate) fn document(uri: &str) -> Option<&'static Value> {
    let is_below = uri.starts_with("https://json-schema.org/draft/2020-12/");
    let has_uri = |document: &&Value| document.get("$id").and_then(Value::as_str) == Some(uri);
    if is_below { DOCUMENTS.iter().find(has_uri) } else { None }
}

/// Checks a schema against the metaschema.
pub(crate) fn check(schema: &Value) -> Result<(), CompileError> {
    static COMPILED: OnceLock<Result<Schema, CompileError>> = OnceLock::new();
    let compile = || {
        let root = document(DIALECT).unwrap_or(&Value::Bool(false));
        Schema::compile_unchecked(root, &[])
    };
    let metaschema = COMPILED.get_or_init(compile).as_ref().map_err(Clone::clone)?;
    match metaschema.check_unlimited(schema).violations().first() {
        None => Ok(()),
        Some(violation) => Err(CompileError::new(violation.pointer(), violation.message())),
    }
}
