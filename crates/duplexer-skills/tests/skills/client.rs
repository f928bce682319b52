//! What a client accepts of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer::client::{SkillError, UseSkills};
use duplexer::skills::VerifyError;
use duplexer::testing::TestClient;
use duplexer::types::json::{Json, JsonObject};
use duplexer::types::methods;
use duplexer::types::page::PaginatedParams;
use duplexer::types::resource::{ReadResourceParams, ReadResourceResult, ResourceContents};
use duplexer::types::skill::{
    EXTENSION, GetSkillParams, GetSkillResult, ListSkillsResult, ReadDirectoryParams, ReadDirectoryResult,
    Skill, SkillResource,
};
use duplexer::types::version::Window;
use duplexer::{McpError, Server};

use super::common::{Folder, clients};

const URI: &str = "skill://pdf/SKILL.md";
const MANIFEST: &str = "---\nname: pdf\ndescription: Forms\n---\nBody.\n";

/// A server that lists `MANIFEST` and sends `contents` instead. It counts reads.
fn tampered(entry: Skill, contents: Vec<ResourceContents>) -> (Server, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let (count, listed) = (Arc::clone(&reads), entry.clone());
    let server = Server::builder("s", "0")
        .extension(EXTENSION, Json::object())
        .on(methods::SkillsList, move |_: PaginatedParams| {
            std::future::ready(Ok::<_, McpError>(ListSkillsResult::new([listed.clone()])))
        })
        .on(methods::SkillsGet, move |_: GetSkillParams| {
            std::future::ready(Ok::<_, McpError>(GetSkillResult::new(entry.clone())))
        })
        .on(methods::ResourcesRead, move |_: ReadResourceParams| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok::<_, McpError>(ReadResourceResult::new(contents.clone())))
        })
        .build()
        .unwrap();
    (server, reads)
}

/// Returns the entry of a skill with this manifest, as our own server makes it.
async fn entry(of: &str) -> Skill {
    let folder = Folder::new();
    folder.write("pdf/SKILL.md", of);
    let client = TestClient::new(&folder.server()).await.unwrap();
    let entry = client.get_skill(URI).await.unwrap().skill;
    client.close().await;
    entry
}

async fn load(entry: Skill, contents: Vec<ResourceContents>) -> Result<String, SkillError> {
    let (server, _) = tampered(entry, contents);
    let client = TestClient::new(&server).await.unwrap();
    let listed = client.all_skills().await.unwrap().remove(0);
    let loaded = client.load_skill(listed).await.map(|skill| skill.manifest().to_owned());
    client.close().await;
    loaded
}

fn text(text: &str) -> Vec<ResourceContents> {
    vec![ResourceContents::text(URI, text)]
}

/// SKL-12: content that fails a check is not used, and the error says which one.
#[tokio::test]
async fn tampered_manifests_are_refused() {
    assert_eq!(load(entry(MANIFEST).await, text(MANIFEST)).await.unwrap(), MANIFEST);
    let refused = async |entry: Skill, contents| match load(entry, contents).await.unwrap_err() {
        SkillError::Verify(error) => error,
        other => panic!("{other}"),
    };
    let evil = MANIFEST.replace("Body.", "Evil!");
    assert!(
        matches!(refused(entry(MANIFEST).await, text(&evil)).await, VerifyError::Digest(uri) if uri == URI)
    );
    let longer = format!("{MANIFEST}more");
    assert!(matches!(refused(entry(MANIFEST).await, text(&longer)).await, VerifyError::Size { .. }));
    // Size and digest fit; only the front matter differs from what was shown to the user.
    let other = MANIFEST.replace("Forms", "Fraud");
    let mut lying = entry(&other).await;
    lying.frontmatter.insert("description", Json::from("Forms"));
    let error = refused(lying, text(&other)).await;
    assert!(matches!(&error, VerifyError::FrontMatter { field, .. } if field == "description"), "{error}");
}

/// Answers that are not the one file are refused.
#[tokio::test]
async fn other_contents_are_refused() {
    for contents in [
        vec![],
        vec![ResourceContents::text("skill://other/SKILL.md", MANIFEST)],
        [text(MANIFEST), text(MANIFEST)].concat(),
        vec![ResourceContents::blob(URI, "not base64!")],
        vec![ResourceContents::blob(URI, "/w==")],
    ] {
        let error = load(entry(MANIFEST).await, contents.clone()).await.unwrap_err();
        assert!(matches!(&error, SkillError::Contents(uri) if uri == URI), "{error} {contents:?}");
    }
}

/// EXF-06: an invalid entry is listed, and nothing of it is read.
#[tokio::test]
async fn nothing_is_read_for_an_invalid_entry() {
    let fields = || JsonObject::new().with("name", "pdf").with("description", "d");
    let outside = SkillResource::new("skill://other/x.md", "sha256:0", 1);
    for entry in [Skill::new(URI, fields(), vec![outside]), Skill::new(URI, JsonObject::new(), vec![])] {
        let (server, reads) = tampered(entry, text(MANIFEST));
        let client = TestClient::new(&server).await.unwrap();
        let listed = client.all_skills().await.unwrap().remove(0);
        assert!(matches!(client.load_skill(listed).await, Err(SkillError::Entry(_))));
        assert_eq!(reads.load(Ordering::Relaxed), 0);
        client.close().await;
    }
}

/// SKL-11: listing reads nothing, and loading reads one file.
#[tokio::test]
async fn no_file_is_read_before_it_is_needed() {
    let folder = Folder::new();
    folder.skill("pdf").write("pdf/a.md", "a");
    for client in clients(&folder.server()).await {
        let reads = || client.transcript().to_string().matches(r#""method":"resources/read""#).count();
        let entry = client.all_skills().await.unwrap().remove(0);
        client.get_skill(&*entry.uri).await.unwrap();
        client.read_directory("skill://pdf").await.unwrap();
        assert_eq!(reads(), 0);
        let skill = client.load_skill(entry).await.unwrap();
        assert_eq!(reads(), 1);
        skill.read("a.md").await.unwrap();
        assert_eq!(reads(), 2);
        // A path that is not listed is not even requested.
        for path in ["../../x", "b.md", "/etc/passwd"] {
            assert!(matches!(skill.read(path).await, Err(SkillError::Verify(VerifyError::NotListed(_)))));
        }
        assert_eq!(reads(), 2);
        client.close().await;
    }
}

fn paging(settings: &str, next: Option<&'static str>) -> Server {
    let settings = Json::parse(settings).unwrap();
    Server::builder("s", "0")
        .extension_in(EXTENSION, settings, Window::ALWAYS)
        .on(methods::ResourcesDirectoryRead, move |_: ReadDirectoryParams| {
            let mut page = ReadDirectoryResult::new([]);
            page.next_cursor = next.map(str::to_owned);
            std::future::ready(Ok::<_, McpError>(page))
        })
        .build()
        .unwrap()
}

/// SKL-01: directories are not requested of a server that does not offer them, and pages end.
#[tokio::test]
async fn directories_are_read_where_they_are_offered() {
    for settings in ["{}", r#"{"directoryRead":false}"#, r#"{"directoryRead":"true"}"#] {
        for client in clients(&paging(settings, None)).await {
            assert!(matches!(client.read_directory("skill://a").await, Err(SkillError::NoDirectories)));
            assert!(!client.transcript().to_string().contains("directory/read"));
            client.close().await;
        }
    }
    for client in clients(&paging(r#"{"directoryRead":true}"#, Some("again"))).await {
        assert!(matches!(client.read_directory("skill://a").await, Err(SkillError::TooManyPages(_))));
        client.close().await;
    }
}
