//! What idle things cost in memory. The only test of its binary: the measure is of all threads.

use duplexer_bench::allocations::{Peak, in_use};
use duplexer_bench::http_call::HttpCall;
use duplexer_bench::task_get;

#[global_allocator]
static ALLOCATOR: Peak = Peak;

const WARM_UP: usize = 100;
const COUNT: usize = 1500;

/// Returns the bytes in use for one more of what `open` opens.
fn each(mut open: impl FnMut()) -> usize {
    (0..WARM_UP).for_each(|_| open());
    let before = in_use();
    (0..COUNT).for_each(|_| open());
    (in_use() - before) / COUNT
}

/// SCL-77: without a shared store an idle session takes at most 1.5 kB. TSK-D18: a task takes at most 2 KB beside its future;
/// with the futures of a debug build, at most 8 KB.
#[test]
fn idle_sessions_and_tasks_are_small() {
    let mut service = HttpCall::without_session().unwrap();
    let session = each(|| service.open_session().unwrap());
    assert!((200..=1500).contains(&session), "an idle session takes {session} bytes");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let running = runtime.block_on(task_get::server().unwrap().start()).unwrap();
    let tasks_of = |tool: &str| {
        each(|| {
            runtime.block_on(async {
                task_get::start(&running, tool).await.unwrap();
                // The task runs until it waits, or has ended.
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
            });
        })
    };
    let (ended, waiting) = (tasks_of("echo"), tasks_of("wait"));
    assert!((200..=2048).contains(&ended), "a task that has ended takes {ended} bytes");
    assert!((ended..=8192).contains(&waiting), "a task that waits takes {waiting} bytes");
    println!(
        "bytes: {session} for a session, {ended} for a task that has ended, {waiting} for one that waits"
    );
}
