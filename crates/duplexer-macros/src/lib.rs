//! `#[tool]`, `#[prompt]` and `#[resource]`: turn functions into parts of a server.
//!
//! Each expands to calls of the public API of `duplexer`, which can also be written manually. Names, types and
//! documentation come from the function's signature; traits interpret the result.

mod expand;
mod options;
mod signature;

use proc_macro::TokenStream;

/// Turns an async function into a tool.
///
/// ```
/// use duplexer::{Server, tool};
///
/// /// Adds two numbers.
/// #[tool]
/// async fn add(
///     /// The first one.
///     a: i64,
///     #[default(1)] b: i64,
/// ) -> i64 {
///     a + b
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let server = Server::builder("calculator", "1.0.0").tool(add).build()?;
/// assert_eq!(add::call(1, 2).await, 3);
/// # Ok(())
/// # }
/// ```
///
/// The name refers to two items afterwards:
///
/// - the function `add()`, which returns the `Tool`. Register it with `.tool(add)`, or change the tool first:
///   `.tool(add().rename("plus"))`.
/// - the type `add`, whose associated function `add::call(..)` is the original function, for tests and other callers.
///
/// The function's name is the tool's name (or `name = ".."`), its documentation the tool's description, its parameters
/// the tool's arguments. A first parameter of type `Context<S>` (or one marked `#[cx]`) is the context.
///
/// Options: `name = "..", title = "..", description = "..", timeout = seconds, read_only, destructive, idempotent,
/// closed_world, check_output, view = "ui://..", app_only, model_only, blocking, task`. A blocking tool is a plain `fn`, which runs on a thread.
///
/// `task` lets calls run as tasks, which outlive their request; the server needs the extension `Tasks`. With options:
/// `task(required, explicit, resumable, answer_within = seconds, cancel_grace = seconds)`, the settings of `TaskPolicy`.
///
/// Parameters: documentation, `#[default(expression)]` or `#[default]`, `#[header("Name")]`, and any `#[serde(..)]` or
/// `#[schemars(..)]` attribute. `Option<T>` can be omitted.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::run(options.into(), function.into(), expand::tool).into()
}

/// Turns an async function into a prompt: its parameters are the prompt's arguments, its result the messages.
///
/// ```
/// use duplexer::completion::CompletionRequest;
/// use duplexer::{Server, prompt};
///
/// async fn languages(request: CompletionRequest) -> Vec<String> {
///     request.filter(["Rust", "Ruby", "Python"])
/// }
///
/// /// Asks for a review.
/// #[prompt]
/// async fn review(code: String, #[complete(languages)] language: Option<String>) -> String {
///     format!("Review this {}: {code}", language.unwrap_or_default())
/// }
///
/// let server = Server::builder("reviewer", "1.0.0").prompt(review).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
///
/// As with [`macro@tool`], `review()` returns the prompt and `review::call(..)` calls the original function.
///
/// Options: `name = "..", title = "..", description = ".."`. On a parameter, `#[complete(function)]` names an async
/// function that suggests values.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::run(options.into(), function.into(), expand::prompt).into()
}

/// Turns an async function into a resource, or into a template if the URI has variables, which are the function's
/// parameters.
///
/// ```
/// use duplexer::{Context, ResourceError, Server, resource};
///
/// struct Table {
///     rows: Vec<String>,
/// }
///
/// /// A row of a table.
/// #[resource("db://rows/{id}")]
/// async fn row(cx: Context<Table>, id: usize) -> Result<String, ResourceError> {
///     cx.state().rows.get(id).cloned().ok_or(ResourceError::NotFound)
/// }
///
/// let server = Server::builder("table", "1.0.0").state(Table { rows: Vec::new() }).resource(row).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
///
/// As with [`macro@tool`], `row()` returns the resource and `row::call(..)` calls the original function.
///
/// Options after the URI: `name = "..", title = "..", description = "..", mime_type = ".."`. On a parameter,
/// `#[complete(function)]` names an async function that suggests values.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::run(options.into(), function.into(), expand::resource).into()
}
