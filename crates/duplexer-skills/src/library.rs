//! The skills that a server offers, and how they follow changes on disk.
//!
//! One task per run of the server scans the directories: at an interval, and when a read finds that a file has changed.
//! Requests use the latest snapshot and wait for no disk.

use std::any::Any;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use duplexer_core::dispatch::lock;
use duplexer_core::stderr_log;
use duplexer_server::subscriptions::Event;
use duplexer_server::{CatalogEdit, CatalogError, RunContext};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::scan::{Root, Scanned, SkillFault, scan};
use crate::serve;
use crate::snapshot::Snapshot;

/// Maximum time that a read waits for a scan.
const SCAN_TIMEOUT: Duration = Duration::from_secs(10);

/// The skills below some directories.
pub(crate) struct Library {
    roots: Vec<Root>,
    snapshot: RwLock<Arc<Snapshot>>,
    /// URIs of files whose digests are wrong.
    stale: Mutex<HashSet<String>>,
    rescan: Notify,
    /// Number of scans that were started.
    started: AtomicU64,
    /// Number of the latest scan that has ended.
    ended: watch::Sender<u64>,
    /// Faults that have been logged and still exist.
    reported: Mutex<Vec<SkillFault>>,
}

impl Library {
    /// Scans the directories for the first time.
    pub(crate) fn open(roots: Vec<Root>) -> Result<Arc<Self>, Vec<SkillFault>> {
        let Scanned { snapshot, faults } = scan(&roots, &Snapshot::default(), &HashSet::new());
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Arc::new(Self {
            roots,
            snapshot: RwLock::new(Arc::new(snapshot)),
            stale: Mutex::default(),
            rescan: Notify::new(),
            started: AtomicU64::new(0),
            ended: watch::Sender::new(0),
            reported: Mutex::default(),
        }))
    }

    /// Returns the latest snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until the directories have been scanned again, because the file with this URI has changed.
    pub(crate) async fn refresh(&self, uri: &str) {
        lock(&self.stale).insert(uri.to_owned());
        // A scan that runs now may have passed the file already.
        let started = self.started.load(Ordering::Acquire);
        let mut ended = self.ended.subscribe();
        self.rescan.notify_one();
        // The task that scans can be gone when the server shuts down.
        let _ = timeout(SCAN_TIMEOUT, ended.wait_for(|ended| *ended > started)).await;
    }

    /// Scans the directories again and again. Runs as long as the server.
    pub(crate) async fn watch<S: Any + Send + Sync>(self: Arc<Self>, cx: RunContext<S>, interval: Duration) {
        loop {
            // Ends early if a read has found a change.
            let _ = timeout(interval, self.rescan.notified()).await;
            self.scan_once(&cx).await;
        }
    }

    async fn scan_once<S: Any + Send + Sync>(self: &Arc<Self>, cx: &RunContext<S>) {
        let number = self.started.fetch_add(1, Ordering::AcqRel) + 1;
        let (library, stale) = (Arc::clone(self), std::mem::take(&mut *lock(&self.stale)));
        let earlier = self.snapshot();
        let scanning =
            tokio::task::spawn_blocking(move || scan(&library.roots, &library.snapshot(), &stale)).await;
        match scanning {
            Ok(Scanned { snapshot, faults }) => {
                self.report(faults);
                self.replace(cx, &earlier, snapshot).await;
            }
            Err(error) => tracing::error!(%error, "skills could not be scanned"),
        }
        self.ended.send_replace(number);
    }

    /// Logs faults that are new.
    fn report(&self, faults: Vec<SkillFault>) {
        let mut reported = lock(&self.reported);
        for fault in faults.iter().filter(|fault| !reported.contains(fault)) {
            tracing::warn!(%fault, "a skill is left out");
            stderr_log::error(format_args!("a skill is left out: {fault}"));
        }
        *reported = faults;
    }

    /// Puts a new snapshot in the place of the earlier one, and notifies subscribed clients of what has changed.
    async fn replace<S: Any + Send + Sync>(
        self: &Arc<Self>,
        cx: &RunContext<S>,
        earlier: &Snapshot,
        snapshot: Snapshot,
    ) {
        let updated = snapshot.updated_since(earlier);
        if *earlier.skills() == *snapshot.skills() {
            // Times of files may have changed. The catalog stays as it is, with the lists that it has rendered.
            return self.store(snapshot);
        }
        let Ok(catalog) = cx.catalog() else { return };
        let edited = catalog.edit(|edit| {
            let is_edited = self.edit(edit, earlier, &snapshot)?;
            self.store(snapshot);
            Ok::<_, CatalogError>(is_edited)
        });
        match edited.await {
            // The edit has notified the clients.
            Ok(true) => {}
            Ok(false) => cx.server().publish(Event::ResourcesChanged).await,
            Err(error) => return tracing::error!(%error, "changed skills could not be offered"),
        }
        for uri in updated {
            cx.server().publish(Event::resource_updated(uri)).await;
        }
    }

    fn store(&self, snapshot: Snapshot) {
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }

    /// Makes the manifests in the catalog those of the new snapshot. Returns whether one of them has changed.
    fn edit<S: Any + Send + Sync>(
        self: &Arc<Self>,
        edit: &mut CatalogEdit<S>,
        earlier: &Snapshot,
        snapshot: &Snapshot,
    ) -> Result<bool, CatalogError> {
        let mut is_edited = false;
        for uri in earlier.skills().keys().filter(|uri| snapshot.skill(uri).is_none()) {
            // It may be gone already: the author can edit the catalog too.
            is_edited |= edit.remove_resource(uri).is_ok();
        }
        for (uri, skill) in snapshot.skills() {
            let known = earlier.skill(uri).map(|known| known.definition());
            if known != Some(skill.definition()) {
                edit.replace_resource(serve::manifest::<S>(self, skill))?;
                is_edited = true;
            }
        }
        Ok(is_edited)
    }
}
