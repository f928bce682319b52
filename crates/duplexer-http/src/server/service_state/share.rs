//! What each principal has in flight, so that none can take all permits of a service.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer_server::Principal;

use crate::session::PrincipalKey;
use crate::sync::{Mutex, lock};

/// Table size below which nothing is pruned.
const MIN_PRUNED: usize = 64;

/// Shares of all principals that have used the service lately.
#[derive(Default)]
pub(in crate::server) struct Shares(Mutex<Table>);

#[derive(Default)]
struct Table {
    by_principal: HashMap<PrincipalKey, Arc<Share>>,
    /// Size at which shares without permits are removed. It follows the number of shares in use.
    prune_at: usize,
}

/// Number of permits that one principal holds.
#[derive(Debug, Default)]
pub(in crate::server) struct Share {
    pub(super) requests: AtomicUsize,
    pub(super) subscriptions: AtomicUsize,
}

impl Shares {
    /// Returns the share of a principal. Permits hold it.
    pub(in crate::server) fn of(&self, principal: &Principal) -> Arc<Share> {
        let mut table = lock(&self.0);
        if let Some(share) = table.by_principal.get(principal as &dyn Identity) {
            return Arc::clone(share);
        }
        if table.by_principal.len() >= table.prune_at {
            table.by_principal.retain(|_, share| Arc::strong_count(share) > 1);
            table.prune_at = (2 * table.by_principal.len()).max(MIN_PRUNED);
        }
        let share = Arc::new(Share::default());
        table.by_principal.insert(PrincipalKey::of(principal), Arc::clone(&share));
        share
    }
}

/// Counts one more and returns whether that is within the limit. The caller always takes it back.
pub(super) fn count(counter: &AtomicUsize, limit: usize) -> bool {
    counter.fetch_add(1, Ordering::Relaxed) < limit
}

/// The identity of a principal, to find its share without a copy of its names.
trait Identity {
    fn identity(&self) -> (&str, Option<&str>, Option<&str>);
}

impl Identity for Principal {
    fn identity(&self) -> (&str, Option<&str>, Option<&str>) {
        Principal::identity(self)
    }
}

impl Identity for PrincipalKey {
    fn identity(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.client, self.issuer.as_deref(), self.subject.as_deref())
    }
}

impl<'a> Borrow<dyn Identity + 'a> for PrincipalKey {
    fn borrow(&self) -> &(dyn Identity + 'a) {
        self
    }
}

/// Agrees with the derived hash of [`PrincipalKey`], whose fields come in the same order.
impl Hash for dyn Identity + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl PartialEq for dyn Identity + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for dyn Identity + '_ {}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(client: &str, subject: Option<&str>) -> Principal {
        let mut principal = Principal::new(client);
        principal.subject = subject.map(str::to_owned);
        principal
    }

    #[test]
    fn a_principal_has_one_share() {
        let shares = Shares::default();
        let own = shares.of(&principal("app", Some("ada")));
        assert!(Arc::ptr_eq(&own, &shares.of(&principal("app", Some("ada")))));
        for other in [principal("app", Some("bob")), principal("app", None), principal("web", Some("ada"))] {
            assert!(!Arc::ptr_eq(&own, &shares.of(&other)));
        }
    }

    /// A share in use is never removed, and the table does not grow with principals that have left.
    #[test]
    fn shares_without_permits_are_removed() {
        let shares = Shares::default();
        let held = shares.of(&principal("held", None));
        for stranger in 0..100 * MIN_PRUNED {
            shares.of(&principal(&stranger.to_string(), None));
        }
        assert!(lock(&shares.0).by_principal.len() <= MIN_PRUNED);
        assert!(Arc::ptr_eq(&held, &shares.of(&principal("held", None))));
    }
}
