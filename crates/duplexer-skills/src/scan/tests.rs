//! Scans of real directories, broken and hostile ones included.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use duplexer_types::skill::SkillResources;

use super::*;
use crate::digest;

/// A directory that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("duplexer-skills-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, path: &str, contents: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }

    fn skill(&self, path: &str) -> &Self {
        let name = path.rsplit('/').next().unwrap();
        self.write(
            &format!("{path}/SKILL.md"),
            format!("---\nname: {name}\ndescription: About {name}\n---\n"),
        )
    }

    fn scan(&self) -> Scanned {
        self.scan_after(&Snapshot::default(), &[])
    }

    fn scan_after(&self, earlier: &Snapshot, stale: &[&str]) -> Scanned {
        let stale: HashSet<String> = stale.iter().map(|uri| (*uri).to_owned()).collect();
        scan(&[root(&self.0, "")], earlier, &stale)
    }

    /// Returns the only fault, without the path of the directory.
    fn fault(&self) -> String {
        let faults = self.scan().faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults[0].to_string().replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn root(path: &Path, under: &str) -> Root {
    Root { path: path.to_owned(), under: under.to_owned() }
}

fn uris(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.skills().keys().map(String::as_str).collect()
}

/// URIs of the files of a skill.
fn files(snapshot: &Snapshot, uri: &str) -> Vec<String> {
    let SkillResources::Listed(files) = &snapshot.skill(uri).unwrap().entry.resources else {
        panic!("{uri}")
    };
    files.iter().map(|file| file.uri.clone()).collect()
}

/// SKL-03, SKL-06: paths become URIs, and every file is listed once with size and digest.
#[test]
fn every_skill_is_found_with_all_its_files() {
    let folder = Folder::new();
    folder.skill("refunds").skill("acme/billing/invoices");
    folder.write("refunds/references/a b.md", "text").write("refunds/logo.png", [0xff, 0x00]);
    folder.write("notes.md", "no skill").write("refunds/.hidden", "x").write("refunds/.git/config", "x");
    let Scanned { snapshot, faults } = folder.scan();
    assert_eq!(faults, []);
    assert_eq!(uris(&snapshot), ["skill://acme/billing/invoices/SKILL.md", "skill://refunds/SKILL.md"]);
    let listed = files(&snapshot, "skill://refunds/SKILL.md");
    assert_eq!(
        listed,
        ["skill://refunds/SKILL.md", "skill://refunds/logo.png", "skill://refunds/references/a%20b.md"]
    );
    let logo = snapshot.file("skill://refunds/logo.png").unwrap();
    assert_eq!((logo.stamp.size, &logo.digest), (2, &digest::of(&[0xff, 0x00])));
    assert!(snapshot.file("skill://notes.md").is_none());
}

/// SKL-06, SKL-10: the files of a nested skill belong to both; directories have their direct children.
#[test]
fn nested_skills_belong_to_the_outer_one_too() {
    let folder = Folder::new();
    folder.skill("outer").skill("outer/parts/inner").write("outer/parts/inner/a.md", "a");
    fs::create_dir(folder.0.join("outer/empty")).unwrap();
    let snapshot = folder.scan().snapshot;
    let outer = files(&snapshot, "skill://outer/SKILL.md");
    assert!(outer.contains(&"skill://outer/parts/inner/SKILL.md".to_owned()), "{outer:?}");
    assert_eq!(snapshot.owners("skill://outer/parts/inner/a.md").len(), 2);
    let children = |uri: &str| -> Vec<(String, Option<String>)> {
        let children = snapshot.directory(uri).unwrap_or_else(|| panic!("{uri}"));
        children.iter().map(|child| (child.name.clone(), child.mime_type.clone())).collect()
    };
    let directory = || Some("inode/directory".to_owned());
    assert_eq!(
        children("skill://outer"),
        [
            ("outer".to_owned(), Some("text/markdown".to_owned())),
            ("empty".to_owned(), directory()),
            ("parts".to_owned(), directory())
        ]
    );
    assert_eq!(children("skill://outer/parts"), [("inner".to_owned(), directory())]);
    assert_eq!(children("skill://outer/empty"), []);
    assert!(snapshot.directory("skill://outer/").is_none());
    assert!(snapshot.directory("skill://outer/SKILL.md").is_none());
}

/// A directory that is a skill itself has its own name; another prefix of its URI can be set.
#[test]
fn a_single_skill_can_be_offered_under_a_path() {
    let folder = Folder::new();
    folder.skill("pdf");
    let scanned = scan(&[root(&folder.0.join("pdf"), "acme/tools")], &Snapshot::default(), &HashSet::new());
    assert_eq!(scanned.faults, []);
    assert_eq!(uris(&scanned.snapshot), ["skill://acme/tools/pdf/SKILL.md"]);
    for under in ["../x", "/x", "a\\b", "a\0b"] {
        let scanned = scan(&[root(&folder.0, under)], &Snapshot::default(), &HashSet::new());
        assert!(scanned.faults[0].to_string().contains("is not a path"), "{under:?}");
    }
}

/// SKL-D1: a broken skill is a fault with its file and line, and the others stay.
#[test]
fn a_broken_skill_is_named_and_the_others_stay() {
    let folder = Folder::new();
    folder.skill("fine").write("broken/SKILL.md", "---\nname: broken\ndescription: [\n---\n");
    let scanned = folder.scan();
    assert_eq!(uris(&scanned.snapshot), ["skill://fine/SKILL.md"]);
    assert!(folder.fault().starts_with("broken/SKILL.md: line "), "{}", folder.fault());
    folder.write("broken/SKILL.md", "---\nname: other\ndescription: d\n---\n");
    assert_eq!(folder.fault(), "broken/SKILL.md: its name is `other`, and its directory is `broken`");
    folder.write("broken/SKILL.md", [0xff]);
    assert_eq!(folder.fault(), "broken/SKILL.md: the file is not UTF-8");
    folder.write(
        "broken/SKILL.md",
        "---\nname: broken\ndescription: d\nmetadata: {io.modelcontextprotocol/x: 1}\n---\n",
    );
    assert_eq!(
        folder.fault(),
        "broken: the key `io.modelcontextprotocol/x` below `metadata` is reserved for the protocol"
    );
}

/// SKL-08: limits are checked before anything is read.
#[test]
fn a_skill_over_a_limit_is_refused() {
    let folder = Folder::new();
    folder.skill("large");
    // Sparse, so that nothing is written.
    let large = fs::File::create(folder.0.join("large/huge.bin")).unwrap();
    large.set_len(1 << 33).unwrap();
    assert_eq!(folder.fault(), "large: the files of the skill are larger than 16777216 bytes together");
    fs::remove_file(folder.0.join("large/huge.bin")).unwrap();
    for number in 0..MAX_FILES {
        folder.write(&format!("large/{number}"), "");
    }
    assert_eq!(folder.fault(), "large: the skill has more than 512 files or directories");
    fs::remove_file(folder.0.join("large/0")).unwrap();
    assert_eq!(folder.scan().faults, []);
}

/// SKL-08: names that collide are refused, wherever the skills are.
#[test]
fn skills_that_collide_are_refused() {
    let folder = Folder::new();
    folder.skill("a/pdf").skill("b/pdf");
    let fault = folder.fault();
    assert!(
        fault.starts_with("b/pdf: the skill in ") && fault.ends_with("a/pdf has the name `pdf` too"),
        "{fault}"
    );
    let twice = scan(
        &[root(&folder.0.join("a"), ""), root(&folder.0.join("a"), "")],
        &Snapshot::default(),
        &HashSet::new(),
    );
    assert_eq!((uris(&twice.snapshot), twice.faults.len()), (vec!["skill://pdf/SKILL.md"], 1));
    // The files of the inner one would be missing in the list of the outer one.
    folder.skill("c/inner");
    let roots = [root(&folder.0.join("a"), ""), root(&folder.0.join("c"), "pdf/x")];
    let nested = scan(&roots, &Snapshot::default(), &HashSet::new());
    assert_eq!(uris(&nested.snapshot), ["skill://pdf/SKILL.md"]);
    assert!(nested.faults[0].to_string().contains("lies inside of a skill of another directory"));
}

#[test]
fn a_directory_that_does_not_exist_is_a_fault() {
    let folder = Folder::new();
    folder.write("file", "");
    for (path, expected) in [("missing", "missing: "), ("file", "file: is not a directory")] {
        let faults = scan(&[root(&folder.0.join(path), "")], &Snapshot::default(), &HashSet::new()).faults;
        assert!(faults[0].to_string().contains(expected), "{faults:?}");
    }
}

/// SKL-D2: links are followed inside of the directory and nowhere else.
#[cfg(unix)]
#[test]
fn links_out_of_the_directory_are_neither_listed_nor_read() {
    use std::os::unix::fs::symlink;
    let outside = Folder::new();
    outside.write("secret.md", "secret").write("secrets/more.md", "secret").skill("stranger");
    let folder = Folder::new();
    folder.skill("pdf").write("common/logo.svg", "<svg/>").write("pdf/.env", "secret");
    let at = |path: &str| folder.0.join(path);
    symlink(outside.0.join("secret.md"), at("pdf/secret.md")).unwrap();
    symlink(outside.0.join("secrets"), at("pdf/secrets")).unwrap();
    symlink(outside.0.join("stranger"), at("stranger")).unwrap();
    symlink("../../../../../../etc/passwd", at("pdf/passwd")).unwrap();
    symlink(".env", at("pdf/visible")).unwrap();
    symlink("nowhere", at("pdf/dangling")).unwrap();
    symlink("itself", at("pdf/itself")).unwrap();
    symlink("..", at("pdf/up")).unwrap();
    symlink(".", at("pdf/here")).unwrap();
    symlink("../common", at("pdf/assets")).unwrap();
    let Scanned { snapshot, faults } = folder.scan();
    assert_eq!(faults, []);
    assert_eq!(uris(&snapshot), ["skill://pdf/SKILL.md"]);
    assert_eq!(
        files(&snapshot, "skill://pdf/SKILL.md"),
        ["skill://pdf/SKILL.md", "skill://pdf/assets/logo.svg"]
    );
    // A manifest that is a link out is none.
    fs::create_dir(at("linked")).unwrap();
    symlink(outside.0.join("stranger/SKILL.md"), at("linked/SKILL.md")).unwrap();
    assert_eq!(uris(&folder.scan().snapshot), ["skill://pdf/SKILL.md"]);
}

/// A file that becomes a link out after the scan is not read.
#[cfg(unix)]
#[test]
fn a_file_that_becomes_a_link_out_is_not_read() {
    let outside = Folder::new();
    outside.write("secret.md", "secret");
    let folder = Folder::new();
    folder.skill("pdf").write("pdf/a.md", "a");
    let snapshot = folder.scan().snapshot;
    let file = snapshot.file("skill://pdf/a.md").unwrap();
    let read = || load(&file.base, &file.relative, MAX_SKILL_SIZE, Keep::Contents);
    assert_eq!(read().unwrap().bytes, b"a");
    fs::remove_file(folder.0.join("pdf/a.md")).unwrap();
    std::os::unix::fs::symlink(outside.0.join("secret.md"), folder.0.join("pdf/a.md")).unwrap();
    assert!(matches!(read(), Err(LoadError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound));
    assert!(folder.scan_after(&snapshot, &[]).snapshot.file("skill://pdf/a.md").is_none());
}

/// SKL-06: every file is listed, so a name without a URI breaks its skill.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_breaks_its_skill() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Folder::new();
    folder.skill("fine").skill("odd");
    fs::write(folder.0.join("odd").join(OsStr::from_bytes(b"\xff.md")), "").unwrap();
    assert_eq!(folder.fault(), "odd: the name `\u{fffd}.md` is not UTF-8, so it has no URI");
    assert_eq!(uris(&folder.scan().snapshot), ["skill://fine/SKILL.md"]);
}

/// Opening a named pipe blocks.
#[cfg(target_os = "linux")]
#[test]
fn devices_and_pipes_are_not_offered() {
    let folder = Folder::new();
    folder.skill("pdf");
    let made = std::process::Command::new("mkfifo").arg(folder.0.join("pdf/pipe")).status().unwrap();
    assert!(made.success());
    assert_eq!(files(&folder.scan().snapshot, "skill://pdf/SKILL.md"), ["skill://pdf/SKILL.md"]);
}

/// SKL-D2: an unchanged file is not read again; a changed one is.
#[test]
fn digests_follow_the_files() {
    let folder = Folder::new();
    folder.skill("pdf").write("pdf/a.md", "one");
    let first = folder.scan().snapshot;
    let uri = "skill://pdf/a.md";
    let again = folder.scan_after(&first, &[]).snapshot;
    assert!(Arc::ptr_eq(first.file(uri).unwrap(), again.file(uri).unwrap()));
    assert!(again.updated_since(&first).is_empty() && again.skills() == first.skills());
    // A digest that a read has found to be wrong is computed again, whatever the times say.
    let renewed = folder.scan_after(&first, &[uri]).snapshot;
    assert!(!Arc::ptr_eq(first.file(uri).unwrap(), renewed.file(uri).unwrap()));
    folder.write("pdf/a.md", "longer").write("pdf/b.md", "new");
    let changed = folder.scan_after(&first, &[]).snapshot;
    assert_eq!(changed.updated_since(&first), [uri]);
    assert_eq!(changed.file(uri).unwrap().digest, digest::of(b"longer"));
    assert_eq!(files(&changed, "skill://pdf/SKILL.md").len(), 3);
}

/// Directories inside of each other end somewhere.
#[test]
fn a_deep_tree_is_a_fault() {
    let folder = Folder::new();
    folder.skill("fine").write(&format!("{}x", "d/".repeat(40)), "");
    let fault = folder.fault();
    assert!(fault.ends_with("more than 32 directories are inside of each other"), "{fault}");
    assert_eq!(uris(&folder.scan().snapshot), ["skill://fine/SKILL.md"]);
}
