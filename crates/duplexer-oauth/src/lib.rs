//! OAuth 2.1 for Duplexer clients.
//!
//! An [`OAuth`] is given to an HTTP transport. It sends the stored token, and when the server refuses a request it obtains
//! or renews one and has the request sent again: the caller sees one answer. Nothing above the transport knows OAuth.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use duplexer_http_client::HttpTransport;
//! use duplexer_oauth::{FileCredentials, OAuth};
//!
//! let login = OAuth::login_with_browser("my-program").store(FileCredentials::for_application("my-program")?).build()?;
//! let transport = HttpTransport::builder("https://mcp.example.com/mcp").authorization(Arc::new(login)).build()?;
//! # drop(transport);
//! # Ok(()) }
//! ```
//!
//! Without a person: [`OAuth::client_credentials`], [`OAuth::enterprise`], [`OAuth::workload`], [`OAuth::from_fn`]. In a
//! web application: [`OAuth::login_on_web`].
//!
//! # Guarantees
//!
//! A token goes to the server it was obtained for, over TLS or on this machine, and nowhere else. A public server cannot
//! send the client to private addresses. A refresh token is spent once, by one process, and its successor is stored before
//! it is used. Secrets are zeroized, not logged, and not in the arguments of programs.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod account;
mod acquire;
mod builder;
mod challenge;
mod client;
mod discovery;
mod dpop;
mod error;
mod event;
mod flight;
mod flow;
mod grant;
mod jws;
mod key;
mod layer;
mod login;
mod oauth;
mod record;
mod refresh;
mod scope;
mod server;
mod settings;
mod step_up;
mod store;
mod token;
mod web;

pub use account::{Renewal, Status};
pub use builder::OAuthBuilder;
pub use challenge::Challenge;
pub use client::ClientIdentity;
pub use client::document::ClientDocument;
pub use dpop::Dpop;
pub use duplexer_core::error::StoreError;
pub use duplexer_oauth_base::Secret;
pub use error::OAuthError;
pub use event::Event;
pub use grant::assertion::{AssertionRequest, IdentityProvider};
pub use grant::workload::{TokenFile, WorkloadToken};
pub use key::{Algorithm, KeyError, Signer, SigningKey};
pub use login::browser::Browser;
pub use login::loopback::Loopback;
pub use login::present::{Paste, Presenter, PrintUrl};
pub use oauth::OAuth;
pub use settings::StepUp;
pub use store::file::FileCredentials;
#[cfg(feature = "keyring")]
pub use store::keyring::KeyringCredentials;
pub use store::memory::MemoryCredentials;
pub use store::{CredentialStore, Generation, Key, Record, StoreLock, Swapped};
