//! Completion of arguments of prompts and resource templates.

use crate::json::JsonObject;
use crate::model::{kinds, model};
use crate::wire::{Shape, Wire};

model! {
    /// Parameters of a [`completion/complete`](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#requesting-completions) request.
    ///
    /// ```
    /// use duplexer_types::completion::{CompleteParams, CompletionArgument, PromptReference};
    ///
    /// let params = CompleteParams::new(PromptReference::new("review"), CompletionArgument::new("language", "R"));
    /// assert_eq!(params.argument.value, "R");
    /// ```
    #[doc(alias = "completion/complete")]
    pub struct CompleteParams {
        /// The prompt or resource template that has the argument.
        reference: CompletionReference = "ref",
        /// The argument to complete.
        argument: CompletionArgument = "argument",
    } optional {
        /// Arguments that are already resolved.
        context: CompletionContext = "context" since V2025_06_18,
    }
}

kinds! {
    /// [Reference](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#reference-types) to a prompt or resource template.
    pub enum CompletionReference by "type" {
        /// Reference to a prompt.
        Prompt(PromptReference) = "ref/prompt",
        /// Reference to a resource template.
        Resource(ResourceTemplateReference) = "ref/resource",
    }
}

impl Wire for CompletionReference {
    fn write<S: serde::Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        self.write_kind(shape, serializer)
    }
}

model! {
    /// [Reference](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#reference-types) to a prompt, by name.
    pub struct PromptReference const "type" = "ref/prompt" {
        /// Name of the prompt.
        name: String = "name",
    } optional {
        /// Display name.
        title: String = "title" since V2025_06_18,
    }
}

model! {
    /// [Reference](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#reference-types) to a resource or resource template, by URI.
    pub struct ResourceTemplateReference const "type" = "ref/resource" {
        /// URI, or URI template.
        uri: String = "uri",
    }
}

model! {
    /// Argument to complete in a `completion/complete` request.
    pub struct CompletionArgument {
        /// Name of the argument.
        name: String = "name",
        /// Current value of the argument, for matching.
        value: String = "value",
    }
}

model! {
    /// Context of a `completion/complete` request.
    pub struct CompletionContext {} optional {
        /// Arguments of the prompt or template that are already resolved.
        arguments: JsonObject<String> = "arguments",
    }
}

model! {
    /// Result of a [`completion/complete`](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#requesting-completions) request.
    #[doc(alias = "completion/complete")]
    pub result CompleteResult {
        /// The suggested values.
        completion: Completion = "completion",
    }
}

model! {
    /// Suggested [values](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#completion-results) of an argument, best match first.
    ///
    /// ```
    /// use duplexer_types::completion::Completion;
    ///
    /// let suggestions = Completion::truncated((0..150).map(|number| number.to_string()).collect());
    /// assert_eq!((suggestions.values.len(), suggestions.total), (100, Some(150)));
    /// ```
    pub struct Completion {
        /// The suggested values, at most [`Self::MAX_VALUES`].
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::suggestions))]
        values: Vec<String> = "values",
    } optional {
        /// Total number of matches.
        total: u64 = "total",
        /// Whether there are more matches than `values`.
        has_more: bool = "hasMore",
    }
}

impl Completion {
    /// Maximum number of values in one result.
    pub const MAX_VALUES: usize = 100;

    /// Creates a completion with the first [`Self::MAX_VALUES`] of `values`. Sets `total` and `hasMore` if there are more.
    pub fn truncated(mut values: Vec<String>) -> Self {
        let total = values.len();
        values.truncate(Self::MAX_VALUES);
        let completion = Self::new(values);
        if total > Self::MAX_VALUES { completion.total(total as u64).has_more(true) } else { completion }
    }
}
