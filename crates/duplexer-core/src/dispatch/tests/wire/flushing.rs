//! How many writes the frames of several handlers take.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::dispatch::tests::{EndsIdleTest, Reply, TestInbound};
use crate::dispatch::{Dispatch, JsonRpcDispatcher, lock};
use crate::transport::{TransportContext, lines};

/// Keeps the number of lines of each write.
#[derive(Clone, Default)]
struct Writes(Arc<Mutex<Vec<usize>>>);

impl AsyncWrite for Writes {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        lock(&self.0).push(memchr::memchr_iter(b'\n', bytes).count());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Handlers that wait for the same go on together, and one write takes what all of them have sent.
#[tokio::test(start_paused = true)]
async fn handlers_that_go_on_together_share_a_write() {
    let _idle = EndsIdleTest::new();
    let gate = Arc::new(Semaphore::new(0));
    let open = Arc::clone(&gate);
    let inbound = TestInbound::new().on("wait", move |cx, _| {
        let open = Arc::clone(&open);
        async move {
            open.acquire().await.unwrap().forget();
            cx.channel.notify("note", None).await;
            open.acquire().await.unwrap().forget();
            Ok(Reply::of(&json!("waited")))
        }
    });
    let (mut input, reader) = tokio::io::duplex(4096);
    let writes = Writes::default();
    let transport = lines::over(reader, writes.clone(), TransportContext::stream("memory"), 4096);
    let (dispatcher, _peer) = JsonRpcDispatcher::new(transport);
    let mut run = JoinSet::new();
    run.spawn(dispatcher.run(Arc::new(inbound)));
    for id in 1..=3 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "wait"});
        input.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    }
    for expected in [&[][..], &[3], &[3, 3]] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(*lock(&writes.0), expected);
        gate.add_permits(3);
    }
}
