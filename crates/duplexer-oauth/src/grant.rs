//! How tokens are obtained: by the login of a person, or without one.

pub(crate) mod assertion;
pub(crate) mod credentials;
pub(crate) mod function;
pub(crate) mod workload;

use crate::client::ClientIdentity;
use crate::login::Login;
use assertion::AssertionGrant;
use function::TokenFunction;
use workload::WorkloadGrant;

/// Source of tokens.
pub(crate) enum Grant {
    /// Authorization code, with a person.
    Login(Box<Login>),
    ClientCredentials(ClientIdentity),
    /// An assertion of another issuer about the user (ID-JAG).
    Assertion(AssertionGrant),
    /// An assertion of the platform about this workload.
    Workload(WorkloadGrant),
    /// A function of the application, without any OAuth.
    Function(TokenFunction),
}

impl Grant {
    /// Returns the configured clients.
    pub(crate) fn identities(&self) -> &[ClientIdentity] {
        match self {
            Self::Login(login) => &login.identities,
            Self::ClientCredentials(client) => std::slice::from_ref(client),
            Self::Assertion(grant) => std::slice::from_ref(&grant.client),
            Self::Workload(grant) => std::slice::from_ref(&grant.client),
            Self::Function(_) => &[],
        }
    }

    pub(crate) fn is_login(&self) -> bool {
        matches!(self, Self::Login(_))
    }
}
