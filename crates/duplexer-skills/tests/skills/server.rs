//! What a server offers.

use duplexer::client::UseSkills;
use duplexer::server::CatalogItem;
use duplexer::testing::TestClient;
use duplexer::types::error::ErrorCode;
use duplexer::types::json::Json;
use duplexer::types::methods::{ResourcesDirectoryRead, SkillsList};
use duplexer::types::page::PaginatedParams;
use duplexer::types::resource::ResourceContents;
use duplexer::types::skill::{EXTENSION, ReadDirectoryParams, SkillResources};
use duplexer::types::version::Era;
use duplexer::types::wire::CacheScope;
use duplexer::{Resource, Server};

use super::common::{Folder, clients, code};

/// SKL-01, EXF-D1: declared with its settings in every revision, together with resources.
#[tokio::test]
async fn skills_are_declared_in_every_era() {
    let folder = Folder::new();
    for client in clients(&folder.skill("pdf").server()).await {
        let capabilities = client.server_capabilities();
        let settings = capabilities.extensions.as_ref().and_then(|all| all.get(EXTENSION)).map(Json::as_str);
        assert_eq!(settings, Some(r#"{"directoryRead":true}"#), "{:?}", client.era());
        let resources = capabilities.resources.as_ref().unwrap();
        assert_eq!(resources.list_changed, Some(true));
        assert!(capabilities.tools.is_none() && capabilities.prompts.is_none());
        client.close().await;
    }
}

/// EXF-01: a server without the extension does not know its methods.
#[tokio::test]
async fn without_the_extension_there_are_no_skills() {
    let server = Server::builder("s", "0").resource(Resource::text("a://b", "c")).build().unwrap();
    for client in clients(&server).await {
        assert!(client.server_capabilities().extensions.is_none());
        assert_eq!(code(client.all_skills().await), ErrorCode::METHOD_NOT_FOUND);
        assert_eq!(code(client.get_skill("skill://a/SKILL.md").await), ErrorCode::METHOD_NOT_FOUND);
        client.close().await;
    }
}

/// SKL-04, SKL-05, SKL-06.
#[tokio::test]
async fn skills_are_listed_and_found_by_their_uri() {
    let folder = Folder::new();
    folder.skill("pdf").write("pdf/references/forms.md", "forms").skill("acme/billing/refunds");
    for client in clients(&folder.server()).await {
        let skills = client.all_skills().await.unwrap();
        let uris: Vec<_> = skills.iter().map(|skill| skill.uri.as_str()).collect();
        assert_eq!(uris, ["skill://acme/billing/refunds/SKILL.md", "skill://pdf/SKILL.md"]);
        let pdf = client.get_skill("skill://pdf/SKILL.md").await.unwrap();
        assert_eq!(pdf.skill, skills[1]);
        let scope = (client.era() == Era::Envelope).then_some(CacheScope::Private);
        assert_eq!((pdf.ttl_ms.is_some(), pdf.cache_scope), (scope.is_some(), scope));
        let SkillResources::Listed(files) = &pdf.skill.resources else { panic!("{pdf:?}") };
        assert_eq!((files.len(), files[1].size), (2, 5));
        for unknown in
            ["skill://other/SKILL.md", "skill://pdf", "skill://pdf/references/forms.md", "", "../pdf"]
        {
            assert_eq!(code(client.get_skill(unknown).await), ErrorCode::INVALID_PARAMS, "{unknown}");
        }
        client.close().await;
    }
}

/// SKL-04: pages end, no entry is split, and an invalid cursor is refused.
#[tokio::test]
async fn many_skills_are_listed_in_pages() {
    let folder = Folder::new();
    for number in 0..120 {
        folder.skill(&format!("skill-{number}"));
    }
    let client = TestClient::new(&folder.server()).await.unwrap();
    assert_eq!(client.all_skills().await.unwrap().len(), 120);
    let first = client.request::<SkillsList>(PaginatedParams::new()).await.unwrap();
    assert!(first.skills.len() < 120 && first.next_cursor.is_some());
    let wrong = client.request::<SkillsList>(PaginatedParams::new().cursor("x")).await;
    assert_eq!(code(wrong), ErrorCode::INVALID_PARAMS);
    client.close().await;
}

/// SKL-07: no byte is changed. Text if it is UTF-8, a blob otherwise.
#[tokio::test]
async fn files_are_read_byte_by_byte() {
    let folder = Folder::new();
    let manifest = "\u{feff}---\r\nname: pdf\r\ndescription: d\r\n---\r\nBody\r\n";
    let files: [(&str, &[u8]); 5] = [
        ("crlf.md", b"\xef\xbb\xbfa\r\nb\n\0\n"),
        ("logo.png", b"\x89PNG\xff\0"),
        ("latin1.txt", b"caf\xe9"),
        ("vector.svg", b"<svg/>"),
        ("empty", b""),
    ];
    folder.write("pdf/SKILL.md", manifest);
    for (name, bytes) in files {
        folder.write(&format!("pdf/{name}"), bytes);
    }
    for client in clients(&folder.server()).await {
        let entry = client.get_skill("skill://pdf/SKILL.md").await.unwrap().skill;
        let skill = client.load_skill(entry).await.unwrap();
        assert_eq!((skill.manifest(), skill.instructions()), (manifest, "Body\r\n"));
        for (name, bytes) in files {
            assert_eq!(skill.read(name).await.unwrap(), bytes, "{name}");
        }
        let read = async |name: &str| {
            let uri = format!("skill://pdf/{name}");
            client.read_resource(uri).await.unwrap().contents.remove(0)
        };
        assert!(
            matches!(read("vector.svg").await, ResourceContents::Text(text) if text.mime_type.as_deref() == Some("image/svg+xml"))
        );
        assert!(matches!(read("latin1.txt").await, ResourceContents::Blob(_)));
        assert!(
            matches!(read("empty").await, ResourceContents::Text(text) if text.mime_type.as_deref() == Some("text/plain"))
        );
        client.close().await;
    }
}

/// Nothing outside of the skills can be read, whatever the URI.
#[tokio::test]
async fn only_listed_files_are_read() {
    let folder = Folder::new();
    folder.skill("pdf").write("pdf/.env", "secret").write("notes.md", "secret");
    for client in clients(&folder.server()).await {
        for uri in [
            "skill://notes.md",
            "skill://pdf/.env",
            "skill://pdf/../notes.md",
            "skill://pdf/%2e%2e/notes.md",
            "skill://pdf/..%2Fnotes.md",
            "skill:///etc/passwd",
            "skill://pdf",
            "skill://pdf/",
            "skill://pdf//SKILL.md",
            "skill://PDF/SKILL.md",
            "skill://pdf/SKILL.md%00",
        ] {
            let refused = code(client.read_resource(uri).await);
            let expected = match client.era() {
                Era::Envelope => ErrorCode::INVALID_PARAMS,
                Era::Handshake => ErrorCode::RESOURCE_NOT_FOUND,
            };
            assert_eq!(refused, expected, "{uri}");
        }
        client.close().await;
    }
}

/// SKL-09: the manifest is a resource with name, description and media type; other files have a template.
#[tokio::test]
async fn manifests_are_listed_as_resources() {
    let folder = Folder::new();
    folder.skill("pdf").write("pdf/other.md", "");
    for client in clients(&folder.server()).await {
        let resources = client.all_resources().await.unwrap();
        assert_eq!(resources.len(), 1);
        let manifest = &resources[0];
        assert_eq!((manifest.uri.as_str(), manifest.name.as_str()), ("skill://pdf/SKILL.md", "pdf"));
        assert_eq!(manifest.description.as_deref(), Some("About pdf"));
        assert_eq!(manifest.mime_type.as_deref(), Some("text/markdown"));
        assert!(manifest.meta.is_none());
        assert_eq!(client.all_resource_templates().await.unwrap()[0].uri_template, "skill://{+path}");
        client.close().await;
    }
}

/// SKL-10: direct children; a file and an unknown directory are refused.
#[tokio::test]
async fn directories_are_read() {
    let folder = Folder::new();
    folder.skill("pdf").write("pdf/references/forms.md", "forms");
    for number in 0..450 {
        folder.write(&format!("pdf/many/{number}"), "");
    }
    for client in clients(&folder.server()).await {
        let names = async |uri: &str| -> Vec<String> {
            let children = client.read_directory(uri).await.unwrap();
            children.into_iter().map(|child| child.uri).collect()
        };
        let root = names("skill://pdf").await;
        assert_eq!(root, ["skill://pdf/SKILL.md", "skill://pdf/many", "skill://pdf/references"]);
        assert_eq!(names("skill://pdf/references").await, ["skill://pdf/references/forms.md"]);
        assert_eq!(names("skill://pdf/many").await.len(), 450);
        for wrong in ["skill://pdf/SKILL.md", "skill://pdf/", "skill://other", "skill://", "", "file:///"] {
            let outcome = client.request::<ResourcesDirectoryRead>(ReadDirectoryParams::new(wrong)).await;
            assert_eq!(code(outcome), ErrorCode::INVALID_PARAMS, "{wrong}");
        }
        let cursor = ReadDirectoryParams::new("skill://pdf").cursor("x");
        assert_eq!(code(client.request::<ResourcesDirectoryRead>(cursor).await), ErrorCode::INVALID_PARAMS);
        client.close().await;
    }
}

/// SKL-D4: what a caller cannot see is in no list, has no entry, and cannot be read.
#[tokio::test]
async fn a_hidden_skill_is_hidden_everywhere() {
    let folder = Folder::new();
    folder.skill("open").skill("secret").write("secret/plan.md", "plan").write("open/a.md", "a");
    let server = Server::builder("s", "0")
        .extend(folder.skills())
        .visible(|_, item| !matches!(item, CatalogItem::Resource(uri) if uri.contains("secret")))
        .build()
        .unwrap();
    for client in clients(&server).await {
        let skills = client.all_skills().await.unwrap();
        assert_eq!(skills.len(), 1);
        let entry = skills[0].clone();
        assert!(client.load_skill(entry).await.unwrap().read("a.md").await.is_ok());
        assert_eq!(code(client.get_skill("skill://secret/SKILL.md").await), ErrorCode::INVALID_PARAMS);
        for uri in ["skill://secret/SKILL.md", "skill://secret/plan.md"] {
            assert!(client.read_resource(uri).await.is_err(), "{uri}");
        }
        let directory = ReadDirectoryParams::new("skill://secret");
        let refused = client.request::<ResourcesDirectoryRead>(directory).await;
        assert_eq!(code(refused), ErrorCode::INVALID_PARAMS);
        client.close().await;
    }
}

/// SKL-D1: the build fails with every fault, and each text names its file.
#[test]
fn a_broken_skill_fails_the_build() {
    let folder = Folder::new();
    folder
        .write("one/SKILL.md", "no front matter")
        .write("two/SKILL.md", "---\nname: other\ndescription: d\n---\n");
    let error = Server::builder("s", "0").extend(folder.skills()).build().unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    assert!(lines[0].ends_with("one/SKILL.md: line 1: a SKILL.md begins with a line `---`"), "{error}");
    assert!(lines[1].ends_with("two/SKILL.md: its name is `other`, and its directory is `two`"), "{error}");
}

/// Servers with skills can become part of others, under a prefix too: URIs have none.
#[tokio::test]
async fn a_server_with_skills_can_be_nested() {
    let folder = Folder::new();
    let inner = Server::builder("inner", "0").extend(folder.skill("pdf").skills());
    let server = Server::builder("outer", "0").nest("docs", inner).build().unwrap();
    let client = TestClient::new(&server).await.unwrap();
    assert_eq!(client.all_skills().await.unwrap()[0].uri, "skill://pdf/SKILL.md");
    client.close().await;
}
