//! The laws hold for the stores in memory, and a store with one fault breaks the law about it.

mod faulty;

use std::sync::Arc;

use super::*;
use crate::http::MemoryCluster;
use crate::server::subscriptions::MemoryBus;
use crate::tasks::MemoryTasks;
use faulty::{Fault, faulty};

const CHANGE_LOG: usize = 12;

/// Nodes with stores in memory, which can have a fault.
struct InMemory {
    cluster: MemoryCluster,
    bus: MemoryBus,
    tasks: MemoryTasks,
    fault: Option<Fault>,
}

impl InMemory {
    fn new(fault: Option<Fault>) -> Self {
        let cluster = MemoryCluster::new(StoreLimits::default().idle);
        Self { cluster, bus: MemoryBus::with_log(CHANGE_LOG), tasks: MemoryTasks::new(), fault }
    }
}

impl StoresUnderTest for InMemory {
    fn node(&self) -> BoxFuture<'_, Result<NodeStores, StoreError>> {
        let (bus, tasks) = (Arc::new(self.bus.clone()), Arc::new(self.tasks.clone()));
        let node = NodeStores { shared: self.cluster.node(), bus, tasks };
        let node = match self.fault {
            Some(fault) => faulty(&node, fault),
            None => node,
        };
        Box::pin(std::future::ready(Ok(node)))
    }

    fn limits(&self) -> StoreLimits {
        StoreLimits { change_log: CHANGE_LOG, ..StoreLimits::default() }
    }
}

/// SCL-96.
#[tokio::test(start_paused = true)]
async fn stores_in_memory_obey_the_laws() {
    let stores = InMemory::new(None);
    for law in LAWS {
        law.check(&stores).await.unwrap();
    }
    check(&stores).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_with_a_fault_breaks_the_law_about_it() {
    for (fault, law) in faulty::FAULTS {
        let broken = check(&InMemory::new(Some(*fault))).await.expect_err(law);
        assert_eq!(broken.law(), *law, "{fault:?}: {broken}");
        assert!(broken.to_string().starts_with(&format!("the law `{law}` is broken: ")), "{broken}");
    }
}

#[test]
fn every_law_has_a_name_of_its_own() {
    let mut names: Vec<_> = LAWS.iter().map(Law::name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), LAWS.len());
}
