//! What the two OAuth halves of Duplexer share: `duplexer-auth` (servers) and `duplexer-oauth` (clients).
//!
//! - [`address`] decides which addresses and URLs are public, on this machine, or protected by TLS.
//! - [`fetch`] sends HTTP requests with limits, on request to the public network only.
//! - [`secret`] generates, compares and hides secrets.
//! - [`clock`] is the current time, which tests replace.
//!
//! Applications use the two crates above it, which re-export what belongs to their interface.

pub mod address;
pub mod clock;
pub mod fetch;
pub mod secret;

pub use secret::Secret;
