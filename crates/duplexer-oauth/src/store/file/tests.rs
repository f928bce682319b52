//! Both paths of private files: that of Unix, and that of other platforms.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::portable::PortableFiles;
use super::records::PrivateFiles;
use super::unix::UnixFiles;
use super::*;

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("duplexer-files-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn records<P: PrivateFiles>(&self) -> Records<P> {
        Records::new(self.0.join("app/oauth")).unwrap()
    }

    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.join("app/oauth")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
    }
}

fn record(text: &str) -> Record {
    Record::new(text.as_bytes().to_vec()).unwrap()
}

/// OAC-95, OAC-96: a record is replaced as a whole, only if it is the expected one, and nothing is left beside it.
async fn replaces_records<P: PrivateFiles>(name: &str) {
    let (folder, key) = (Folder::new(name), Key::new(&["a"]));
    let records = folder.records::<P>();
    assert!(records.load(&key).unwrap().is_none());
    let (one, two) = (record("one"), record("two"));
    assert!(matches!(records.swap(&key, None, Some(one.clone())).await.unwrap(), Swapped::Done));
    let conflict = records.swap(&key, None, Some(two.clone())).await.unwrap();
    assert!(matches!(conflict, Swapped::Conflict(Some(found)) if found.content() == b"one"));
    let replaced = records.swap(&key, Some(one.generation()), Some(two.clone())).await.unwrap();
    assert!(matches!(replaced, Swapped::Done));
    assert_eq!(folder.records::<P>().load(&key).unwrap().unwrap().content(), b"two");
    assert_eq!((folder.files("json").len(), folder.files("new").len()), (1, 0));
    assert!(matches!(records.swap(&key, Some(two.generation()), None).await.unwrap(), Swapped::Done));
    assert!(records.load(&key).unwrap().is_none());
    assert!(folder.files("json").is_empty());
}

/// OAC-95: of many writers with the same expectation one succeeds, and locks exclude each other.
async fn excludes_others<P: PrivateFiles>(name: &str) {
    let (folder, key) = (Folder::new(name), Arc::new(Key::new(&["a"])));
    let mut writers = JoinSet::new();
    for number in 0..8 {
        let (records, key) = (folder.records::<P>(), Arc::clone(&key));
        writers.spawn(async move {
            let swapped = records.swap(&key, None, Some(record(&number.to_string()))).await.unwrap();
            usize::from(matches!(swapped, Swapped::Done))
        });
    }
    assert_eq!(writers.join_all().await.into_iter().sum::<usize>(), 1);
    let held = folder.records::<P>().lock(&key).await.unwrap();
    let path = folder.files("lock").remove(0);
    assert!(P::try_lock(&path).unwrap().is_none());
    drop(held);
    assert!(P::try_lock(&path).unwrap().is_some());
}

/// OAC-96: links are refused in place of the folder, of a record and of a lock; their targets are not touched.
async fn refuses_links<P: PrivateFiles>(name: &str) {
    let (folder, key) = (Folder::new(name), Key::new(&["a"]));
    let records = folder.records::<P>();
    records.swap(&key, None, Some(record("one"))).await.unwrap();
    let target = folder.0.join("target");
    for path in [folder.files("json").remove(0), folder.files("swap").remove(0)] {
        std::fs::rename(&path, &target).unwrap();
        symlink(&target, &path).unwrap();
        let before = std::fs::read(&target).unwrap();
        let refused = records.swap(&key, None, Some(record("two"))).await;
        assert!(matches!(refused, Err(StoreError::Denied(_))), "{refused:?}");
        assert_eq!(std::fs::read(&target).unwrap(), before);
        std::fs::remove_file(&path).unwrap();
    }
    let link = folder.0.join("link");
    symlink(folder.0.join("app/oauth"), &link).unwrap();
    assert!(matches!(Records::<P>::new(link), Err(StoreError::Denied(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn private_files_on_unix() {
    replaces_records::<UnixFiles>("unix-replace").await;
    excludes_others::<UnixFiles>("unix-lock").await;
    refuses_links::<UnixFiles>("unix-links").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn private_files_on_other_platforms() {
    replaces_records::<PortableFiles>("portable-replace").await;
    excludes_others::<PortableFiles>("portable-lock").await;
    refuses_links::<PortableFiles>("portable-links").await;
}

/// The name of an application is one folder, not a path.
#[test]
fn an_application_is_one_folder() {
    for wrong in ["", ".", "..", "a/b", "a\\b", "c:x", ".hidden"] {
        assert!(matches!(FileCredentials::for_application(wrong), Err(StoreError::Denied(_))), "{wrong}");
    }
}
