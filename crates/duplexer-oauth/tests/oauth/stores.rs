//! The stores, and what they refuse.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use duplexer_oauth::{CredentialStore, FileCredentials, MemoryCredentials, OAuth, OAuthError, StoreError};

use crate::mock::Mock;
use crate::site::{Person, connect};

/// A folder that is removed when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn folder(name: &str) -> Folder {
    let path = std::env::temp_dir().join(format!("duplexer-oauth-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    Folder(path)
}

fn records(folder: &Folder) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

fn login(person: &Person, store: impl CredentialStore) -> OAuth {
    OAuth::login_with_browser("test").present(person.browser()).store(store).build().unwrap()
}

/// OAC-96: files and folder are private, nothing is left beside them, and a restart needs no login.
#[tokio::test]
async fn files_are_private() {
    let (folder, person) = (folder("private"), Person::default());
    let mock = Mock::new(|_, _| None).await;
    for _ in 0..2 {
        let store = FileCredentials::at(folder.path()).unwrap();
        connect(&mock.url(), &login(&person, store)).await.unwrap();
    }
    assert_eq!(person.times(), 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.path()), 0o700);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        assert!(path.extension().is_some_and(|ending| ending != "new"));
    }
    assert_eq!(records(&folder).len(), 1);
}

/// OAC-96: a folder or file that others can use, or that is a link, is refused; nothing is overwritten.
#[tokio::test]
async fn open_folders_and_links_are_refused() {
    let (folder, person) = (folder("links"), Person::default());
    let mock = Mock::new(|_, _| None).await;
    let store = FileCredentials::at(folder.path()).unwrap();
    connect(&mock.url(), &login(&person, store.clone())).await.unwrap();
    let record = records(&folder).remove(0);
    let denied = |opened: Result<_, OAuthError>| {
        let Err(OAuthError::Store(error)) = opened else { panic!("the store is used") };
        matches!(*error, StoreError::Denied(_))
    };
    fs::set_permissions(&record, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(denied(connect(&mock.url(), &login(&person, store.clone())).await));
    let target = folder.path().join("target");
    fs::rename(&record, &target).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&target, &record).unwrap();
    assert!(denied(connect(&mock.url(), &login(&person, store.clone())).await));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(FileCredentials::at(folder.path()), Err(StoreError::Denied(_))));
    assert!(denied(connect(&mock.url(), &login(&person, store)).await));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let link = folder.path().join("link");
    symlink(folder.path(), &link).unwrap();
    assert!(matches!(FileCredentials::at(&link), Err(StoreError::Denied(_))));
    assert_eq!(person.times(), 1);
}

/// OAC-49: a damaged record is an error, and is not overwritten by a login.
#[tokio::test]
async fn a_damaged_record_is_not_overwritten() {
    let (folder, person) = (folder("damaged"), Person::default());
    let mock = Mock::new(|_, _| None).await;
    let store = FileCredentials::at(folder.path()).unwrap();
    connect(&mock.url(), &login(&person, store.clone())).await.unwrap();
    let record = records(&folder).remove(0);
    for damaged in [&b""[..], b"zz", b"00000000000000010000000000000000{\"version\":99,\"entries\":[]}"] {
        fs::write(&record, damaged).unwrap();
        let Err(OAuthError::Store(error)) = connect(&mock.url(), &login(&person, store.clone())).await else {
            panic!("the record is used")
        };
        assert!(matches!(*error, StoreError::Unreadable(_)));
        assert_eq!(fs::read(&record).unwrap(), damaged);
    }
}

/// OAC-26, OAC-95: a program that is killed while its person logs in keeps its registration.
#[tokio::test]
async fn a_registration_is_stored_before_the_browser_opens() {
    let mock = Mock::new(|_, _| None).await;
    let store = MemoryCredentials::new();
    let present = |_: String| async { Err("killed".into()) };
    let killed = OAuth::login_with_browser("test").present(present).store(store.clone()).build().unwrap();
    assert!(connect(&mock.url(), &killed).await.is_err());
    assert_eq!(mock.seen("/register").len(), 1);
    // The port of the first attempt is free again, so that its registration fits.
    let person = Person::default();
    connect(&mock.url(), &login(&person, store)).await.unwrap();
    assert_eq!(mock.seen("/register").len(), 1);
}
