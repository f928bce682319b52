//! Two nodes on one store, which do not share their memory.

use super::*;
use crate::features::subscriptions::MemoryBus;

/// A node with its own view of the store.
async fn node(store: &Faulty, bus: &MemoryBus) -> RunningServer {
    let wait = Tool::new("wait", || async { std::future::pending::<()>().await }).task(TaskPolicy::new());
    let server = Server::builder("jobs", "0").subscriptions(bus.clone()).extend(Tasks::on(store.clone()));
    server.tool(wait).build().unwrap().start().await.unwrap()
}

/// TSK-D12: a task is seen and cancelled at any node. The node that runs it hears of that over the bus; without one, when it
/// next renews its lease.
#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_at_another_node() {
    let (shared, renewal) = (MemoryBus::new(), Duration::from_secs(10));
    for (bus, longest) in [(shared.clone(), Duration::ZERO), (MemoryBus::new(), renewal)] {
        let store = Faulty::default();
        let (one, two) = (node(&store, &shared).await, node(&store, &bus).await);
        let ada = client(Some("ada"));
        let id = start(&one, &ada, "wait").await.unwrap();
        assert_eq!(status(&two, &ada, &id).await, TaskStatus::Working);
        let begun = tokio::time::Instant::now();
        about(&two, &ada, Method::TasksCancel, &id).await.unwrap();
        assert_eq!(end(&one, &ada, &id).await, TaskStatus::Cancelled);
        let waited = begun.elapsed();
        assert!(waited <= longest, "{waited:?}");
    }
}
