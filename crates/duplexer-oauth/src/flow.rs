//! The authorization code flow: the request, the answer of the authorization server, and the token exchange.

pub(crate) mod callback;
pub(crate) mod exchange;
pub(crate) mod pending;
