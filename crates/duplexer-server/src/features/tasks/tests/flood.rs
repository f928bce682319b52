//! Floods of requests about tasks: all are answered, and nothing is kept for them.

use super::*;

const FLOOD: usize = 2000;

/// A connection of 2025-11-25, on behalf of a principal.
fn experiment(principal: Option<&str>) -> Arc<Connection> {
    let principal = principal.map(|name| Arc::new(Principal::new(name)));
    let caller = Caller { principal, ..Caller::default() };
    let version = ProtocolVersion::LATEST_HANDSHAKE;
    Arc::new(Connection::ready(version, ClientProfile::UNKNOWN).with_caller(caller))
}

async fn record(store: &MemoryTasks, id: &str) -> Arc<TaskRecord> {
    store.get(&TaskId::from(id)).await.unwrap().unwrap()
}

/// TSK-08, TSK-80, TSK-84, TSK-85: guessed ids, and the id of another principal's task, by the thousand and in both
/// revisions. Every request has the same answer, nothing is kept for it, and the task is not affected.
#[tokio::test]
async fn guessed_and_foreign_ids_are_refused_and_leave_nothing_behind() {
    let store = MemoryTasks::new();
    let running = running(Tasks::on(store.clone())).await;
    let id = start(&running, &client(Some("ada")), "wait").await.unwrap();
    let before = record(&store, &id).await;
    let extension = &[Method::TasksGet, Method::TasksUpdate, Method::TasksCancel][..];
    let older = &[Method::TasksGet, Method::TasksResult, Method::TasksCancel][..];
    for number in 0..FLOOD {
        let asked = if number % 2 == 0 { id.clone() } else { format!("guessed-{number}") };
        for (caller, methods) in [(client(Some("eve")), extension), (experiment(None), older)] {
            for method in methods {
                let error = about(&running, &caller, *method, &asked).await.unwrap_err().to_wire("");
                let expected = (ErrorCode::INVALID_PARAMS, "Unknown task");
                assert_eq!((error.code, &*error.message), expected, "{method:?}");
            }
        }
    }
    assert_eq!(record(&store, &id).await, before);
    // The run of the task itself waits for changes of it.
    assert!(running.tasks().unwrap().plan.hub.watched() <= 1);
}

/// TSK-20, TSK-21, TSK-25, TSK-84: the owner's own flood. Updates without an open question change nothing, and of all
/// cancellations one does.
#[tokio::test]
async fn a_flood_of_updates_and_cancellations_changes_a_task_once() {
    let store = MemoryTasks::new();
    let stubborn = || async { std::future::pending::<()>().await };
    let policy = TaskPolicy::new().cancel_grace(Duration::from_secs(3600));
    let stubborn = Tool::new("stubborn", stubborn).task(policy);
    let server = Server::builder("jobs", "0").extend(Tasks::on(store.clone())).tool(stubborn);
    let running = server.build().unwrap().start().await.unwrap();
    let ada = client(Some("ada"));
    let id = start(&running, &ada, "stubborn").await.unwrap();
    for key in 0..FLOOD {
        let params = format!(r#"{{"taskId":"{id}","inputResponses":{{"{key}":{{"ignored":true}}}}}}"#);
        testing::call(&running, &ada, Method::TasksUpdate, &params).await.unwrap();
    }
    assert_eq!(record(&store, &id).await.revision, 0);
    for _ in 0..FLOOD {
        about(&running, &ada, Method::TasksCancel, &id).await.unwrap();
    }
    let now = record(&store, &id).await;
    assert_eq!((now.revision, now.state.cancel_requested, now.is_final()), (1, true, false));
    let (revision, handshake) = (now.revision, experiment(Some("ada")));
    about(&running, &handshake, Method::TasksCancel, &id).await.unwrap();
    for _ in 0..FLOOD {
        let late = about(&running, &handshake, Method::TasksCancel, &id).await.unwrap_err().to_wire("");
        assert_eq!(late.code, ErrorCode::INVALID_PARAMS);
        about(&running, &ada, Method::TasksCancel, &id).await.unwrap();
    }
    assert_eq!(record(&store, &id).await.revision, revision + 1, "it ended once");
}
