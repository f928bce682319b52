//! Step-up: a request needs scopes that its token does not have (OAC-50 to OAC-53).

use std::sync::Arc;

use duplexer_http_client::Verdict;

use crate::acquire::Purpose;
use crate::challenge::Challenge;
use crate::error::OAuthError;
use crate::oauth::Inner;
use crate::scope;
use crate::server::{Active, Server};
use crate::settings::StepUp;

/// Maximum scope sets of refused step-ups that are remembered. Beyond it no further one is tried.
const MAX_FUTILE: usize = 64;
/// Maximum step-ups after which the server has not accepted a request yet.
const MAX_IN_A_ROW: usize = 2;

/// What is known of the step-ups at one server.
#[derive(Default)]
pub(crate) struct StepUps {
    /// Scope sets that were not granted.
    futile: Vec<Vec<String>>,
    /// Number of step-ups since the server last accepted a request.
    in_a_row: usize,
}

impl StepUps {
    /// Notes that the server has accepted a request with the current token.
    pub(crate) fn accepted(&mut self) {
        self.in_a_row = 0;
    }

    /// Returns whether another step-up for these scopes would change nothing.
    fn is_futile(&self, required: &[String]) -> bool {
        self.in_a_row >= MAX_IN_A_ROW
            || self.futile.len() >= MAX_FUTILE
            || self.futile.iter().any(|refused| refused == required)
    }
}

impl Server {
    /// Notes the outcome of a step-up for `required`. A failure that can pass, such as a login that was not finished, does
    /// not make it futile.
    pub(crate) fn note_step_up(&self, required: Vec<String>, outcome: &Result<(), OAuthError>) {
        let mut state = self.state();
        let is_refused = match outcome {
            Ok(()) => {
                state.step_ups.in_a_row += 1;
                let active = state.active.as_ref();
                !active.is_some_and(|active| scope::covers(&active.tokens.scopes, &required))
            }
            Err(error) => matches!(error, OAuthError::LoginDenied | OAuthError::Authority { .. }),
        };
        let futile = &mut state.step_ups.futile;
        if is_refused && futile.len() < MAX_FUTILE && !futile.contains(&required) {
            futile.push(required);
        }
    }
}

impl Inner {
    /// Requests more scopes, unless that cannot change anything.
    pub(crate) async fn step_up(
        self: &Arc<Self>,
        server: &Arc<Server>,
        active: &Active,
        challenge: Challenge,
    ) -> Result<Verdict, OAuthError> {
        let required = challenge.scopes();
        let has_all = scope::covers(&active.tokens.scopes, &required);
        let is_futile = || server.state().step_ups.is_futile(&required);
        if self.settings.step_up == StepUp::Never || has_all || is_futile() {
            return Err(OAuthError::InsufficientScope { required });
        }
        self.acquire(server, challenge, Purpose::StepUp).await?;
        let granted = server.state().active.clone();
        let is_granted = granted.is_some_and(|active| scope::covers(&active.tokens.scopes, &required));
        // The token may be the one of another request, for other scopes: then the server refuses this request again.
        if is_granted || !is_futile() {
            return Ok(Verdict::SendAgain);
        }
        Err(OAuthError::InsufficientScope { required })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Vec<String> {
        scope::split(text)
    }

    /// OAC-04, OAC-53: two step-ups without an accepted request are the limit, and so is a number of refused scope sets.
    #[test]
    fn step_ups_have_a_limit() {
        let mut step_ups = StepUps { in_a_row: 1, ..StepUps::default() };
        assert!(!step_ups.is_futile(&scopes("a")));
        step_ups.in_a_row = MAX_IN_A_ROW;
        assert!(step_ups.is_futile(&scopes("a")));
        step_ups.accepted();
        assert!(!step_ups.is_futile(&scopes("a")));
        step_ups.futile = vec![scopes("a b"); MAX_FUTILE - 1];
        assert!(step_ups.is_futile(&scopes("a b")) && !step_ups.is_futile(&scopes("a")));
        step_ups.futile.push(scopes("c"));
        assert!(step_ups.is_futile(&scopes("a")));
    }
}
