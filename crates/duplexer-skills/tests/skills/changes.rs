//! Changes on disk.

use std::fs;
use std::time::Duration;

use duplexer::client::{Change, UseSkills};
use duplexer::server::CatalogItem;
use duplexer::testing::TestClient;
use duplexer::types::error::ErrorCode;
use duplexer::types::subscription::SubscriptionFilter;
use duplexer::{Server, ServerBuilder};

use super::common::{Folder, code, eras};

const OFTEN: Duration = Duration::from_millis(20);
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

fn build(builder: ServerBuilder<()>, folder: &Folder, interval: Duration) -> Server {
    builder.extend(folder.skills().poll_interval(interval)).build().unwrap()
}

fn list() -> SubscriptionFilter {
    SubscriptionFilter::new().resources_list_changed(true)
}

async fn uris(client: &TestClient) -> Vec<String> {
    client.all_skills().await.unwrap().into_iter().map(|skill| skill.uri).collect()
}

/// SKL-D2: a skill that appears, changes or goes is reported to clients of both eras, without a request.
#[tokio::test]
async fn changes_on_disk_become_list_changes() {
    for era in eras() {
        let folder = Folder::new();
        let server = build(Server::builder("s", "0"), folder.skill("first"), OFTEN);
        let client = TestClient::connect(&server, era).await.unwrap();
        let mut changes = client.changes(list()).await.unwrap();
        let before = client.get_skill("skill://first/SKILL.md").await.unwrap().skill;

        folder.write("first/new.md", "new");
        assert_eq!(changes.next().await.unwrap().unwrap(), Change::Resources);
        assert_ne!(client.get_skill("skill://first/SKILL.md").await.unwrap().skill, before);

        folder.skill("second");
        while uris(&client).await.len() < 2 {
            assert_eq!(changes.next().await.unwrap().unwrap(), Change::Resources);
        }
        assert_eq!(client.all_resources().await.unwrap().len(), 2);
        let entry = client.get_skill("skill://second/SKILL.md").await.unwrap().skill;
        assert!(client.load_skill(entry).await.is_ok());

        fs::remove_dir_all(folder.0.join("first")).unwrap();
        while uris(&client).await.len() > 1 {
            assert_eq!(changes.next().await.unwrap().unwrap(), Change::Resources);
        }
        assert_eq!(client.all_resources().await.unwrap().len(), 1);
        assert_eq!(code(client.get_skill("skill://first/SKILL.md").await), ErrorCode::INVALID_PARAMS);
        client.close().await;
    }
}

/// A subscription to one file hears of its changes.
#[tokio::test]
async fn a_changed_file_is_reported_to_its_subscribers() {
    for era in eras() {
        let folder = Folder::new();
        let server = build(Server::builder("s", "0"), folder.skill("pdf").write("pdf/a.md", "one"), OFTEN);
        let client = TestClient::connect(&server, era).await.unwrap();
        let uri = "skill://pdf/a.md".to_owned();
        let filter = SubscriptionFilter::new().resource_subscriptions([uri.clone()]);
        let mut changes = client.changes(filter).await.unwrap();
        folder.write("pdf/a.md", "other");
        assert_eq!(changes.next().await.unwrap().unwrap(), Change::Resource(uri));
        client.close().await;
    }
}

/// SKL-D1: a skill that becomes broken is left out, and the others stay.
#[tokio::test]
async fn a_skill_that_becomes_broken_is_left_out() {
    let folder = Folder::new();
    let server = build(Server::builder("s", "0"), folder.skill("fine").skill("odd"), OFTEN);
    let client = TestClient::new(&server).await.unwrap();
    let mut changes = client.changes(list()).await.unwrap();
    folder.write("odd/SKILL.md", "---\nname: [\n---\n");
    while uris(&client).await.len() > 1 {
        changes.next().await.unwrap().unwrap();
    }
    assert_eq!(uris(&client).await, ["skill://fine/SKILL.md"]);
    assert!(client.read_resource("skill://odd/SKILL.md").await.is_err());
    folder.skill("odd");
    while uris(&client).await.len() < 2 {
        changes.next().await.unwrap().unwrap();
    }
    client.close().await;
}

/// SKL-07, SKL-12: a read finds a change by itself. The entry follows before the contents are sent, so that a client that
/// requests it again can verify them.
#[tokio::test]
async fn a_read_after_a_change_corrects_the_entry() {
    for era in eras() {
        let folder = Folder::new();
        let server = build(Server::builder("s", "0"), folder.skill("pdf").write("pdf/a.md", "one"), NEVER);
        let client = TestClient::connect(&server, era).await.unwrap();
        let entry = client.get_skill("skill://pdf/SKILL.md").await.unwrap().skill;
        let skill = client.load_skill(entry).await.unwrap();
        // The same size, and perhaps the same time.
        folder.write("pdf/a.md", "two");
        let error = skill.read("a.md").await.unwrap_err().to_string();
        assert!(error.contains("the digest of skill://pdf/a.md is not the one"), "{error}");
        let renewed = skill.refresh().await.unwrap();
        assert_eq!(renewed.read("a.md").await.unwrap(), b"two");
        // A file that is gone is not found, and then not listed.
        fs::remove_file(folder.0.join("pdf/a.md")).unwrap();
        renewed.read("a.md").await.unwrap_err();
        let error = renewed.refresh().await.unwrap().read("a.md").await.unwrap_err().to_string();
        assert_eq!(error, "the entry of the skill does not list `a.md`");
        client.close().await;
    }
}

/// A file that changes during every read is an error, not a mixture.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_keeps_changing_is_never_sent_in_parts() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = Folder::new();
    let size = 1 << 16;
    folder.skill("pdf").write("pdf/big", vec![b'a'; size]);
    let server = build(Server::builder("s", "0"), &folder, OFTEN);
    let client = TestClient::new(&server).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let (path, stop) = (folder.0.join("pdf/big"), Arc::clone(&done));
    // Each file is whole: it is written beside the other one and takes its place.
    let writer = std::thread::spawn(move || {
        let mut letter = b'a';
        while !stop.load(Ordering::Relaxed) {
            letter = if letter == b'z' { b'a' } else { letter + 1 };
            let next = path.with_extension("next");
            fs::write(&next, vec![letter; size]).unwrap();
            fs::rename(&next, &path).unwrap();
        }
    });
    let mut complete = 0;
    for _ in 0..20 {
        if let Ok(result) = client.read_resource("skill://pdf/big").await {
            let duplexer::types::resource::ResourceContents::Text(text) = &result.contents[0] else {
                panic!()
            };
            let bytes = text.text.as_bytes();
            assert!(bytes.len() == size && bytes.iter().all(|byte| *byte == bytes[0]));
            complete += 1;
        }
    }
    done.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    // A file that keeps changing is left out until it stays the same for one look.
    let mut quiet = client.read_resource("skill://pdf/big").await;
    for _ in 0..500 {
        if quiet.is_ok() {
            break;
        }
        tokio::time::sleep(OFTEN).await;
        quiet = client.read_resource("skill://pdf/big").await;
    }
    assert!(quiet.is_ok(), "{quiet:?} after {complete} others");
    client.close().await;
}

/// SKL-D4: a skill that appears later is subject to the filter of the server that offers it, also if that server is a part
/// of another one.
#[tokio::test]
async fn a_new_skill_is_filtered_like_the_others() {
    let folder = Folder::new();
    let hide = |item: CatalogItem<'_>| !matches!(item, CatalogItem::Resource(uri) if uri.contains("secret"));
    let inner = Server::builder("inner", "0").visible(move |_, item| hide(item));
    let inner = inner.extend(folder.skill("open").skills().poll_interval(OFTEN));
    let server = Server::builder("outer", "0").merge(inner).build().unwrap();
    let client = TestClient::new(&server).await.unwrap();
    let mut changes = client.changes(list()).await.unwrap();
    folder.skill("secret");
    assert_eq!(changes.next().await.unwrap().unwrap(), Change::Resources);
    assert_eq!(uris(&client).await, ["skill://open/SKILL.md"]);
    assert!(client.read_resource("skill://secret/SKILL.md").await.is_err());
    client.close().await;
}
