//! What is wrong with a store is said at start, and what to change.

use duplexer_core::error::Chain;
use duplexer_redis::Shared;

use super::store::Store;

async fn refused(url: String) -> String {
    let error = Shared::connect(url).await.unwrap_err();
    let text = Chain(&error).to_string();
    assert!(!text.contains("hunter2"), "the password is in the text: {text}");
    error.to_string()
}

#[tokio::test]
async fn a_wrong_url_is_named() {
    let text = refused("http://user:hunter2@localhost".to_owned()).await;
    assert!(text.starts_with("the URL of the store is not valid"), "{text}");
    let text = Shared::connect("redis://localhost").namespace("a b").await.unwrap_err().to_string();
    assert!(text.starts_with("the namespace `a b` is not valid"), "{text}");
    assert_eq!(
        refused("rediss://user:hunter2@localhost".to_owned()).await,
        "a `rediss://` URL needs the feature `rustls` of duplexer-redis"
    );
}

#[tokio::test]
async fn an_absent_store_is_named_without_the_password() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = refused(format!("redis://user:hunter2@127.0.0.1:{port}")).await;
    assert_eq!(text, format!("no Redis or Valkey answers at 127.0.0.1:{port}"));
}

/// SCL-25: a missing right is named with the rule that gives it.
#[tokio::test]
async fn wrong_credentials_and_missing_rights_are_named() {
    let Some(store) = Store::start("rights").await else { return };
    let mut commands = store.commands().await;
    let mut acl = async |rules: &[&str]| {
        let mut command = redis::cmd("ACL");
        command.arg("SETUSER").arg("app").arg("reset").arg("on").arg(">hunter2");
        for rule in rules {
            command.arg(*rule);
        }
        let () = command.query_async(&mut commands).await.unwrap();
    };
    let url = |password: &str| format!("redis://app:{password}@127.0.0.1:{}", store.port);
    // SCL-89: these rules are enough.
    let enough = [
        "~dpx1:*",
        "&dpx1:*",
        "+@connection",
        "+@read",
        "+@write",
        "+@stream",
        "+@hash",
        "+@string",
        "+@list",
        "+@sortedset",
        "+@scripting",
        "+@pubsub",
        "+info",
        "-@dangerous",
        "+info",
    ];
    acl(&enough).await;
    Shared::connect(url("hunter2")).await.unwrap();
    let text = refused(url("wrong")).await;
    let expected = format!(
        "the store at 127.0.0.1:{} rejects the user name or the password: set them in the URL",
        store.port
    );
    assert_eq!(text, expected);
    let without: Vec<&str> = enough.iter().copied().filter(|rule| *rule != "+@scripting").collect();
    acl(&without).await;
    let text = refused(url("hunter2")).await;
    assert_eq!(text, "the store denies `EVAL`: add `+@scripting` to the ACL of the user");
}
