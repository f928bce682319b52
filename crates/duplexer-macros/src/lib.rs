//! `#[tool]`, `#[prompt]` and `#[resource]`: plain functions become parts of a server.
//!
//! Each expands to calls of the public interface of `duplexer`, which can be written by hand as well. Names, types and
//! documentation come from the function's signature; what its result means is left to traits.

mod expand;
mod options;
mod signature;

use proc_macro::TokenStream;

/// Makes an async function a tool.
///
/// ```ignore
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
/// let server = Server::builder("calculator", "1.0.0").tool(add).build()?;
/// assert_eq!(add(1, 2).await, 3);
/// ```
///
/// What `add` names from here on is a unit struct, which is what `.tool(add)` takes. It can still be called like the function
/// it was: it dereferences to a function pointer, so `add(1, 2).await` works everywhere, in tests for example, and
/// `*add` is that pointer where somebody wants one. The future is boxed. As a struct it also occupies its name among
/// types; a tool with another name than its function's has `name = ".."`.
///
/// The function's name is the tool's, its documentation the tool's description, its parameters the tool's arguments. A
/// first parameter of type `Context<S>` (or one marked `#[cx]`) is the context.
///
/// Options: `name = "..", title = "..", description = "..", timeout = seconds, read_only, destructive, idempotent,
/// closed_world, check_output, blocking`. A blocking tool is a plain `fn`.
///
/// Parameters: documentation, `#[default(expression)]` or `#[default]`, `#[header("Name")]`, and any `#[serde(..)]` or
/// `#[schemars(..)]` attribute. `Option<T>` may be left out.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::run(options.into(), function.into(), expand::tool).into()
}

/// Makes an async function a prompt: its parameters are the prompt's arguments, its result the messages.
///
/// ```ignore
/// /// Asks for a review.
/// #[prompt]
/// async fn review(code: String, #[complete(languages)] language: Option<String>) -> String {
///     format!("Review this {}: {code}", language.unwrap_or_default())
/// }
/// ```
///
/// As with [`macro@tool`], what the name stands for is a unit struct that can still be called.
///
/// Options: `name = "..", title = "..", description = ".."`. On a parameter, `#[complete(function)]` names an async
/// function that suggests values.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::run(options.into(), function.into(), expand::prompt).into()
}

/// Makes an async function a resource, or a template if the URI has variables: these are the function's parameters.
///
/// ```ignore
/// /// A row of a table.
/// #[resource("db://{table}/{id}")]
/// async fn row(cx: Context<Db>, table: String, id: u64) -> Result<String, ResourceError> { .. }
/// ```
///
/// As with [`macro@tool`], what the name stands for is a unit struct that can still be called.
///
/// Options after the URI: `name = "..", title = "..", description = "..", mime_type = ".."`. On a parameter,
/// `#[complete(function)]` names an async function that suggests values.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::run(options.into(), function.into(), expand::resource).into()
}
