//! Number of sessions of each principal.

use std::collections::HashMap;

use crate::server::service_state::shrink;
use crate::session::PrincipalKey;

/// Number of sessions and permits per principal. Sessions without a principal are not counted.
#[derive(Default)]
pub(super) struct PrincipalCounts(HashMap<PrincipalKey, usize>);

impl PrincipalCounts {
    pub(super) fn of(&self, principal: Option<&PrincipalKey>) -> usize {
        principal.and_then(|principal| self.0.get(principal)).copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, principal: Option<&PrincipalKey>) {
        if let Some(principal) = principal {
            *self.0.entry(principal.clone()).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, principal: Option<&PrincipalKey>) {
        let Some(principal) = principal else { return };
        let Some(count) = self.0.get_mut(principal) else { return };
        *count -= 1;
        if *count == 0 {
            self.0.remove(principal);
            shrink(&mut self.0);
        }
    }
}
