//! Server processes that are started again.

use std::process::Command;
use std::time::Duration;

use crate::{Client, ClientError, ErrorKind, Negotiation, RestartPolicy, ServerNotification};
use duplexer_core::transport::child::ChildCommand;
use tokio::sync::mpsc;

/// A server of either era whose tool returns the id of its process, and whose tool `die` ends it.
const SERVER: &str = r#"
    while read -r line; do
        id=$(printf '%s' "$line" | sed -E 's/.*"id":("[^"]*"|[0-9]+).*/\1/')
        reply() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resultType\":\"complete\",$1}}"; }
        case "$line" in
            *'"die"'*) exit 1 ;;
            *'"initialize"'*) open=yes
                reply '"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}' ;;
            *'"server/discover"'*) open=yes
                reply '"supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"' ;;
            *'"tools/call"'*'2026-07-28'*) reply "\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]" ;;
            *'"tools/call"'*) [ "$open" = yes ] && reply "\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]" ;;
        esac
    done
"#;

fn policy(restarts: u32) -> RestartPolicy {
    RestartPolicy::new(restarts).delay(Duration::from_millis(1), Duration::from_millis(1))
}

fn server() -> ChildCommand {
    ChildCommand::new("sh").args(["-c", SERVER])
}

async fn pid(client: &Client) -> String {
    client.call_tool("pid", ()).text().await.unwrap()
}

fn kind(outcome: Result<String, ClientError>) -> ErrorKind {
    outcome.unwrap_err().kind()
}

/// P-STDIO-8, F-5: the session owns its process: both end with `close`.
#[tokio::test]
async fn a_process_that_ends_is_started_again_in_either_era() {
    for negotiation in [Negotiation::Handshake, Negotiation::Auto] {
        let (say, mut heard) = mpsc::channel(8);
        let builder =
            Client::builder("c", "1").negotiation(negotiation).on_notification(move |notification| {
                let _ = say.try_send(notification);
            });
        let client = builder.connect(policy(3).command(server)).await.unwrap();
        let first = pid(&client).await;
        assert_eq!(kind(client.call_tool("die", ()).text().await), ErrorKind::Closed);
        let second = pid(&client).await;
        assert_ne!(first, second);
        if client.protocol_version().as_str() == "2025-11-25" {
            assert_eq!(heard.try_recv().unwrap(), ServerNotification::SessionRenewed);
        }
        client.close().await.unwrap();
        let alive = Command::new("kill").args(["-0", &second]).output().unwrap();
        assert!(!alive.status.success(), "the process outlives its session");
    }
}

#[tokio::test]
async fn restarts_are_limited() {
    let client = Client::builder("c", "1").connect(policy(1).command(server)).await.unwrap();
    assert_eq!(kind(client.call_tool("die", ()).text().await), ErrorKind::Closed);
    assert_eq!(kind(client.call_tool("die", ()).text().await), ErrorKind::Closed);
    client.closed().await;
    assert_eq!(kind(client.call_tool("pid", ()).text().await), ErrorKind::Closed);
    let missing = policy(3).command(|| ChildCommand::new("/no/such/program"));
    let error = Client::builder("c", "1").connect(missing).await.unwrap_err();
    assert!(error.to_string().starts_with("`/no/such/program` cannot be started"), "{error}");
}

#[test]
fn delays_double_up_to_the_maximum() {
    let policy = RestartPolicy::new(4).delay(Duration::from_secs(1), Duration::from_secs(3));
    let delays: Vec<_> =
        (0..5).map(|restart| policy.delay_before(restart).map(|delay| delay.as_secs())).collect();
    assert_eq!(delays, [Some(1), Some(2), Some(3), Some(3), None]);
}
