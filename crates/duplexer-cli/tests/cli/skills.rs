//! Skills: served from a directory, listed, shown and fetched.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use crate::support::{PROGRAM, RunningServer, run};

/// A directory that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("duplexer-cli-skills-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn with_skill() -> Self {
        let folder = Self::new();
        folder.write(
            "skills/pdf/SKILL.md",
            "---\nname: pdf\ndescription: Reads forms.\nlicense: MIT\n---\n# Forms\n",
        );
        folder.write("skills/pdf/scripts/run.sh", "echo\n");
        folder.write("skills/pdf/logo.bin", [0xff, 0x00]);
        folder
    }

    fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    fn path(&self, path: &str) -> String {
        self.0.join(path).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The words of a command with the skills of a folder as a program.
fn words<'a>(words: &[&'a str], skills: &'a str) -> Vec<&'a str> {
    [words, &["--", PROGRAM, "skills", "serve", skills, "--stdio"]].concat()
}

/// The verbs work in both eras, and with a name or a URI.
#[test]
fn skills_are_listed_and_shown_in_both_eras() {
    let folder = Folder::with_skill();
    let skills = folder.path("skills");
    for era in ["handshake", "envelope"] {
        let listed = run(&words(&["skills", "list", "--era", era], &skills)).ok();
        assert_eq!(listed, "Skills\n  pdf  skill://pdf/SKILL.md (3 files)\n      Reads forms.\n");
        for name in ["pdf", "skill://pdf/SKILL.md"] {
            let shown = run(&words(&["skills", "show", name, "--era", era], &skills)).ok();
            let expected = "pdf  skill://pdf/SKILL.md\n      Reads forms.\n  license: MIT\nFiles\n  SKILL.md  65 bytes\n  \
                logo.bin  2 bytes\n  scripts/run.sh  5 bytes\nInstructions\n# Forms\n";
            assert_eq!(shown, expected);
        }
        let json = run(&words(&["skills", "list", "--json", "--era", era], &skills)).json();
        assert_eq!(json["skills"][0]["frontmatter"]["license"], json!("MIT"));
        let entry = run(&words(&["skills", "show", "pdf", "--json", "--era", era], &skills)).json();
        assert_eq!(entry["skill"], json["skills"][0]);
    }
}

/// Every byte arrives, in a new directory.
#[test]
fn a_skill_is_fetched_into_a_new_directory() {
    let folder = Folder::with_skill();
    let (skills, copy) = (folder.path("skills"), folder.path("copy"));
    let fetch = words(&["skills", "fetch", "pdf", "--output", &copy], &skills);
    assert_eq!(run(&fetch).ok(), format!("3 verified files are in {copy}\n"));
    for file in ["SKILL.md", "scripts/run.sh", "logo.bin"] {
        let read = |base: &str| fs::read(Path::new(base).join(file)).unwrap();
        assert_eq!(read(&copy), read(&folder.path("skills/pdf")), "{file}");
    }
    run(&fetch).failed(2, "exists already; --output gives another directory");
}

#[test]
fn an_unknown_skill_gets_a_hint() {
    let folder = Folder::with_skill();
    let skills = folder.path("skills");
    run(&words(&["skills", "show", "pdff"], &skills)).failed(2, "did you mean `pdf`?");
    run(&words(&["skills", "show", "xyz"], &skills))
        .failed(2, "`duplexer skills list` shows which there are");
    run(&words(&["skills", "show", "skill://x/SKILL.md"], &skills))
        .failed(5, "Unknown skill: skill://x/SKILL.md (-32602)");
    run(&words(&["skills", "show"], &skills)).failed(2, "which skill?");
    run(&["skills", "list", "--", PROGRAM, "demo", "--stdio"]).failed(5, "the server offers no skills");
}

/// A broken skill is named with its file and line, before anything is served.
#[test]
fn a_broken_directory_is_not_served() {
    let folder = Folder::with_skill();
    folder.write("skills/odd/SKILL.md", "---\nname: odd\ndescription: [\n---\n");
    run(&["skills", "serve", &folder.path("skills")]).failed(2, "odd/SKILL.md: line ");
    run(&["skills", "serve", &folder.path("missing")]).failed(2, "missing cannot be served: ");
}

/// Over HTTP a new skill appears while the server runs, and listeners hear of it.
#[test]
fn a_served_directory_is_followed_over_http() {
    let folder = Folder::with_skill();
    let mut server = RunningServer::start(&["skills", "serve", &folder.path("skills"), "--port", "0"]);
    let note = server.note();
    let url =
        note.split_whitespace().find_map(|word| word.strip_suffix("/mcp.")).unwrap().to_owned() + "/mcp";
    let mut listener = RunningServer::start(&["listen", &url]);
    assert!(listener.note().contains("istening"));
    folder.write("skills/new/SKILL.md", "---\nname: new\ndescription: Is new.\n---\n");
    assert!(listener.result().contains("resources"), "a change of the list");
    let listed = run(&["skills", "list", &url]).ok();
    assert!(listed.contains("  new  skill://new/SKILL.md (1 file)\n      Is new."), "{listed}");
    assert_eq!(listener.interrupt(), Some(0));
    assert_eq!(server.interrupt(), Some(0));
}
