//! Ends of tasks that are hard to store: a store that is away for long or full, and a server that stops.

use super::*;

/// TSK-D15: the end is not given up while the run works on another task, because the lease of that prolongs this one's too.
#[tokio::test(start_paused = true)]
async fn an_end_is_stored_however_long_the_store_was_away() {
    let (store, lease) = (Faulty::default(), Duration::from_secs(30));
    let running = running(Tasks::on(store.clone()).lease(lease)).await;
    let ada = client(None);
    start(&running, &ada, "wait").await.unwrap();
    let id = start(&running, &ada, "yield").await.unwrap();
    store.set(FAIL);
    tokio::time::sleep(4 * lease).await;
    store.set(WORK);
    assert_eq!(end(&running, &ada, &id).await, TaskStatus::Completed);
}

/// TSK-84, TSK-D16: all tasks together have a limited size. A result beyond it is replaced by a tool error that says so.
#[tokio::test(start_paused = true)]
async fn a_result_that_does_not_fit_is_replaced() {
    let limits = TaskLimits { total_bytes: 4096, ..TaskLimits::default() };
    let large = || async {
        tokio::task::yield_now().await;
        "x".repeat(8192)
    };
    let large = Tool::new("large", large).task(TaskPolicy::new());
    let server = Server::builder("jobs", "0").extend(Tasks::new().limits(limits)).tool(large);
    let running = server.build().unwrap().start().await.unwrap();
    let ada = client(None);
    let id = start(&running, &ada, "large").await.unwrap();
    assert_eq!(end(&running, &ada, &id).await, TaskStatus::Completed);
    let got = about(&running, &ada, Method::TasksGet, &id).await.unwrap();
    let result = got.into_typed::<GetTaskResult>().unwrap().task.result.unwrap();
    assert!(result.as_str().contains("The result cannot be kept"), "{result}");
    assert!(result.as_str().contains(r#""isError":true"#), "{result}");
}

/// TSK-D14: a server that stops releases every resumable task once, and does not take it over again. The next server on the
/// store continues them at once.
#[tokio::test(start_paused = true)]
async fn a_server_that_stops_releases_its_tasks_once() {
    let store = MemoryTasks::new();
    let tasks = Tasks::on(store.clone());
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let server = || {
        let gate = Arc::clone(&gate);
        let wait = Tool::new("wait", move || {
            let gate = Arc::clone(&gate);
            async move { gate.acquire().await.unwrap().forget() }
        });
        let wait = wait.task(TaskPolicy::new().resumable());
        Server::builder("jobs", "0").extend(tasks.clone()).tool(wait).build().unwrap()
    };
    let (first, ada) = (server().start().await.unwrap(), client(None));
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(start(&first, &ada, "wait").await.unwrap());
    }
    first.shutdown().await;
    for id in &ids {
        let left = store.get(&TaskId::from(id.as_str())).await.unwrap().unwrap();
        assert_eq!((left.is_final(), left.lease.run, left.lease.attempt), (false, None, 1));
    }
    let second = server().start().await.unwrap();
    gate.add_permits(ids.len());
    for id in &ids {
        assert_eq!(end(&second, &ada, id).await, TaskStatus::Completed);
    }
}
