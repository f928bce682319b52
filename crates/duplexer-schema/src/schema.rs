//! A compiled schema, and how to make one.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::ambiguity::{self, Ambiguity};
use crate::compile::{self, Compiled};
use crate::error::CompileError;
use crate::limits::CheckLimits;
use crate::report::Report;
use crate::{check, metaschema, upgrade};

/// A compiled JSON Schema.
pub struct Schema {
    compiled: Compiled,
    limits: CheckLimits,
}

impl Schema {
    /// Compiles a schema that refers only to itself and to the metaschema. Its dialect is 2020-12, unless it names draft-07.
    ///
    /// # Errors
    ///
    /// Fails if the schema does not follow the metaschema, names another dialect, refers to something that is not there,
    /// or has a pattern that cannot be matched in linear time (one that looks ahead, or refers back).
    pub fn compile(schema: &Value) -> Result<Self, CompileError> {
        Self::builder().compile(schema)
    }

    /// Returns a builder, for schemas of several documents and for other limits.
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }

    /// Lists what is wrong with a value.
    pub fn check(&self, value: &Value) -> Report {
        check::check(&self.compiled, &self.limits, value)
    }

    /// Returns whether a value is valid. It agrees with [`check`](Self::check): too complex to check is not valid.
    pub fn is_valid(&self, value: &Value) -> bool {
        check::is_valid(&self.compiled, &self.limits, value)
    }

    /// Returns the limits that checks have.
    pub fn limits(&self) -> &CheckLimits {
        &self.limits
    }

    /// Returns a choice that contains itself and two of whose forms cannot be distinguished before they are read, if there
    /// is one: they have the same members, or both contain the choice in the same place.
    ///
    /// In the first case neither serde nor a list of violations can name the form that was meant. In both cases serde
    /// reads the inner choice once for each form, so that the time to decode a value doubles with each of its levels.
    pub fn ambiguity(&self) -> Option<Ambiguity> {
        ambiguity::find(&self.compiled.nodes)
    }

    pub(crate) fn compile_unchecked(
        schema: &Value,
        documents: &[(String, Value)],
    ) -> Result<Self, CompileError> {
        Ok(Self { compiled: compile::compile(schema, documents)?, limits: CheckLimits::default() })
    }

    /// Checks a schema, whose author is trusted.
    pub(crate) fn check_unlimited(&self, schema: &Value) -> Report {
        let limits = CheckLimits::default().steps(u64::MAX, 0).max_steps(u64::MAX);
        check::check(&self.compiled, &limits, schema)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("nodes", &self.compiled.nodes.len()).finish_non_exhaustive()
    }
}

/// Compiles a schema together with the documents that it refers to.
#[derive(Clone, Debug, Default)]
pub struct SchemaBuilder {
    documents: Vec<(String, Value)>,
    limits: CheckLimits,
}

impl SchemaBuilder {
    /// Adds a document that references can lead to. Documents are never fetched.
    #[must_use]
    pub fn document(mut self, uri: impl Into<String>, document: Value) -> Self {
        self.documents.push((uri.into(), document));
        self
    }

    /// Sets the limits of checks.
    #[must_use]
    pub fn limits(mut self, limits: CheckLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Compiles the schema.
    ///
    /// # Errors
    ///
    /// Fails like [`Schema::compile`], also for one of the further documents.
    pub fn compile(self, schema: &Value) -> Result<Schema, CompileError> {
        let root = upgrade::upgraded(schema).map_or(Cow::Borrowed(schema), Cow::Owned);
        let upgrade = |(uri, document): (String, Value)| match upgrade::upgraded(&document) {
            Some(upgraded) => (uri, upgraded),
            None => (uri, document),
        };
        let documents: Vec<_> = self.documents.into_iter().map(upgrade).collect();
        for document in documents.iter().map(|(_, document)| document).chain([&*root]) {
            let dialect = document.get("$schema").and_then(Value::as_str);
            // Another dialect has rules of its own.
            if dialect.is_none_or(|uri| uri.strip_suffix('#').unwrap_or(uri) == metaschema::DIALECT) {
                metaschema::check(document)?;
            }
        }
        let compiled = compile::compile(&root, &documents)?;
        Ok(Schema { compiled, limits: self.limits })
    }
}
