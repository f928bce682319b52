//! Guides, one task each, in the order in which one meets them. The tests run the snippets.
//!
//! *Begin*
//! - [First server](first_server): from `cargo new` to a host
//! - [Into a host](hosts): Claude Desktop, Claude Code, Cursor, VS Code, Codex, Gemini CLI
//!
//! *Write a server*
//! - [Tools](tools): arguments, results, state, progress, blocking work, tools that change
//! - [Errors from other crates](errors): who sees an error: the model, the client, or only your log
//! - [Resources](resources): templates, completion, change notifications, caching
//! - [Files and safe paths](files): folders, paths that cannot escape, the folders of the client
//! - [Prompts](prompts): typed arguments, completion
//! - [Asking the user](asking): forms, pages, the client's model, and the one rule
//! - [Testing](testing): without a process or a port
//!
//! *Run it*
//! - [Running on HTTP](http): public names, proxies, axum, shutdown, sessions, resumption
//! - [Authorization](authorization): tokens of an issuer, scopes per tool, your own tokens
//!
//! *Connect to servers*
//! - [A client](client): calls, errors, questions, changes, child processes, groups and `mcp.json`
//! - [Logging in](logging_in): OAuth in a client: browsers, stored tokens, machines, web applications
//!
//! *Go further*
//! - [Middleware](middleware): code around every message
//! - [Composition](composition): servers made of servers
//! - [Extensions, custom methods and views](extensions): beyond the methods of the protocol
//! - [Protocol eras](eras): what differs between revisions, and where it shows
//!
//! *Move here*
//! - [From rmcp](from_rmcp) and [from the Python SDK](from_python): their names, and where they are here
//!
//! *Stuck?*
//! - [Troubleshooting](troubleshooting): by the exact error text

#[doc = include_str!("../guide/first_server.md")]
pub mod first_server {}

#[doc = include_str!("../guide/hosts.md")]
pub mod hosts {}

#[doc = include_str!("../guide/tools.md")]
pub mod tools {}

#[doc = include_str!("../guide/errors.md")]
pub mod errors {}

#[doc = include_str!("../guide/resources.md")]
pub mod resources {}

#[doc = include_str!("../guide/files.md")]
pub mod files {}

#[doc = include_str!("../guide/prompts.md")]
pub mod prompts {}

#[doc = include_str!("../guide/asking.md")]
pub mod asking {}

#[doc = include_str!("../guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../guide/http.md")]
pub mod http {}

#[doc = include_str!("../guide/authorization.md")]
pub mod authorization {}

#[doc = include_str!("../guide/client.md")]
pub mod client {}

#[doc = include_str!("../guide/logging_in.md")]
pub mod logging_in {}

#[doc = include_str!("../guide/middleware.md")]
pub mod middleware {}

#[doc = include_str!("../guide/composition.md")]
pub mod composition {}

#[doc = include_str!("../guide/extensions.md")]
pub mod extensions {}

#[doc = include_str!("../guide/eras.md")]
pub mod eras {}

#[doc = include_str!("../guide/from_rmcp.md")]
pub mod from_rmcp {}

#[doc = include_str!("../guide/from_python.md")]
pub mod from_python {}

#[doc = include_str!("../guide/troubleshooting.md")]
pub mod troubleshooting {}
