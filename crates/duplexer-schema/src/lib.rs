//! JSON Schema 2020-12, checked within a budget of steps.
//!
//! A schema is compiled once and then checks values from untrusted callers:
//!
//! ```
//! use duplexer_schema::Schema;
//! use serde_json::json;
//!
//! let schema = Schema::compile(&json!({
//!     "type": "object",
//!     "properties": { "stars": { "type": "integer", "maximum": 5 } },
//!     "required": ["stars", "text"],
//! }))?;
//! assert!(schema.is_valid(&json!({ "stars": 4, "text": "Good." })));
//!
//! let report = schema.check(&json!({ "stars": 6 }));
//! assert_eq!(report.to_string(), "- /text: required, but missing\n- /stars: expected at most 5, got 6");
//! # Ok::<(), duplexer_schema::CompileError>(())
//! ```
//!
//! # What a check costs
//!
//! A check never takes more steps than its [`CheckLimits`] allow for the length of the value; a value that needs more has the
//! violation `too complex to check`. Ordinary schemas stay far below:
//!
//! - Branches of `oneOf` and `anyOf` are chosen by their tag: a required member with a constant in each branch (serde's
//!   internal and adjacent tags), or the only required member (external tags). Only the chosen branch is read.
//! - Without a tag each branch is tried once per value, and the verdict is kept. Violations come from the branch that
//!   fits best, or say that no form matches.
//! - The list of violations has a limit, and says so when it is reached.
//!
//! # What is not supported
//!
//! - Other dialects than 2020-12 and draft-07 (which is rewritten as 2020-12), unless a registered metaschema lists their
//!   vocabularies.
//! - References to documents that were not registered: nothing is ever fetched.
//! - Patterns that look ahead or behind or refer back. They make the schema fail to compile, because ignoring them would
//!   accept what the author meant to refuse. Other patterns mean what ECMA-262 says.
//! - `format`, `contentEncoding` and `contentMediaType` are annotations: they check nothing.

mod ambiguity;
mod check;
mod choice;
mod compile;
mod documents;
mod error;
mod limits;
mod metaschema;
mod node;
mod number;
mod pattern;
mod report;
mod schema;
mod text;
mod upgrade;
mod uri;
mod value;

pub use ambiguity::Ambiguity;
pub use error::CompileError;
pub use limits::CheckLimits;
pub use report::{Report, Violation};
pub use schema::{Schema, SchemaBuilder};
