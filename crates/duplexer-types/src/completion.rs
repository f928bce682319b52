//! Suggestions for the argument of a prompt or of a resource template.

use crate::json::JsonObject;
use crate::model::{kinds, model};
use crate::wire::{Shape, Wire};

model! {
    /// Asks what an argument could be.
    pub struct CompleteParams {
        /// Whose argument it is.
        reference: CompletionReference = "ref",
        /// The argument and what has been typed of it.
        argument: CompletionArgument = "argument",
    } optional {
        /// What is known already.
        context: CompletionContext = "context" since V2025_06_18,
    }
}

kinds! {
    /// What an argument belongs to.
    pub enum CompletionReference by "type" {
        /// A prompt.
        Prompt(PromptReference) = "ref/prompt",
        /// A resource template.
        Resource(ResourceTemplateReference) = "ref/resource",
    }
}

impl Wire for CompletionReference {
    fn write<S: serde::Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        self.write_kind(shape, serializer)
    }
}

model! {
    /// A prompt, by its name.
    pub struct PromptReference says "type" = "ref/prompt" {
        /// The prompt's name.
        name: String = "name",
    } optional {
        /// For people.
        title: String = "title" since V2025_06_18,
    }
}

model! {
    /// A resource template, by its URI template.
    pub struct ResourceTemplateReference says "type" = "ref/resource" {
        /// The template, or a URI.
        uri: String = "uri",
    }
}

model! {
    /// An argument and what has been typed of it.
    pub struct CompletionArgument {
        /// The argument's name.
        name: String = "name",
        /// What has been typed so far.
        value: String = "value",
    }
}

model! {
    /// What is known already.
    pub struct CompletionContext {} optional {
        /// Arguments that are settled.
        arguments: JsonObject<String> = "arguments",
    }
}

model! {
    /// The suggestions for an argument.
    pub result CompleteResult {
        /// The suggestions.
        completion: Completion = "completion",
    }
}

model! {
    /// Suggestions, best first: at most a hundred.
    pub struct Completion {
        /// The suggestions.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::suggestions))]
        values: Vec<String> = "values",
    } optional {
        /// How many there are altogether.
        total: u64 = "total",
        /// Whether there are more than these.
        has_more: bool = "hasMore",
    }
}

impl Completion {
    /// How many suggestions one answer holds at most.
    pub const MAX_VALUES: usize = 100;

    /// The first hundred of `values`, and how many there are where those are not all.
    pub fn truncated(mut values: Vec<String>) -> Self {
        let total = values.len();
        values.truncate(Self::MAX_VALUES);
        let completion = Self::new(values);
        if total > Self::MAX_VALUES { completion.total(total as u64).has_more(true) } else { completion }
    }
}
