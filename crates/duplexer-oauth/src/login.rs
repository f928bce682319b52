//! Login of a person: who shows the page, and where the browser returns to.

pub(crate) mod browser;
pub(crate) mod finish;
pub(crate) mod loopback;
pub(crate) mod perform;
pub(crate) mod present;

use std::sync::Arc;

use crate::client::ClientIdentity;
use crate::client::document::ClientDocument;
use loopback::Loopback;
use present::Presenter;

/// Settings of a login.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) identities: Vec<ClientIdentity>,
    pub(crate) document: ClientDocument,
    pub(crate) interaction: Interaction,
}

/// How a person takes part.
#[derive(Clone)]
pub(crate) enum Interaction {
    /// The browser returns to a listener of this process.
    Loopback(Loopback, Arc<dyn Presenter>),
    /// The browser returns to a page of a web application, which calls `finish`.
    Web(String),
}
