//! The logic against the mock of the crate, and a round trip through the keyring of this machine.

use std::path::PathBuf;
use std::time::SystemTime;

use keyring_core::mock;

use super::*;

/// A folder for locks that is removed when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn folder(name: &str) -> Folder {
    Folder(std::env::temp_dir().join(format!("duplexer-keyring-{name}-{}", std::process::id())))
}

fn store(platform: &Platform, folder: &Folder) -> KeyringCredentials {
    let locks = FileCredentials::at(&folder.0).unwrap();
    KeyringCredentials { application: "duplexer-test".to_owned(), platform: Arc::clone(platform), locks }
}

fn record(text: &str) -> Record {
    Record::new(text.as_bytes().to_vec()).unwrap()
}

/// Writes, replaces and removes a record.
async fn round_trip(store: &KeyringCredentials, key: &Key) -> Result<(), StoreError> {
    assert!(store.load(key).await?.is_none());
    let (one, two) = (record("one"), record("two"));
    assert!(matches!(store.swap(key, None, Some(one.clone())).await?, Swapped::Done));
    let found = store.load(key).await?.expect("the record was written");
    assert_eq!((found.generation(), found.content()), (one.generation(), &b"one"[..]));
    let Swapped::Conflict(Some(found)) = store.swap(key, None, Some(two.clone())).await? else {
        panic!("a record was overwritten");
    };
    assert_eq!(found.generation(), one.generation());
    assert!(matches!(store.swap(key, Some(one.generation()), Some(two.clone())).await?, Swapped::Done));
    let outdated = store.swap(key, Some(one.generation()), None).await?;
    assert!(matches!(outdated, Swapped::Conflict(Some(found)) if found.content() == b"two"));
    assert!(matches!(store.swap(key, Some(two.generation()), None).await?, Swapped::Done));
    assert!(store.load(key).await?.is_none());
    Ok(())
}

/// OAC-95
#[tokio::test]
async fn a_record_is_replaced_only_if_it_is_the_expected_one() {
    let (platform, folder): (Platform, _) = (mock::Store::new().unwrap(), folder("swap"));
    round_trip(&store(&platform, &folder), &Key::new(&["a"])).await.unwrap();
}

/// OAC-95: values of their own, like processes, that share the keyring and the lock files.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_writers_succeeds() {
    let (platform, folder): (Platform, _) = (mock::Store::new().unwrap(), folder("many"));
    let key = Key::new(&["a"]);
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (store, key) = (store(&platform, &folder), key.clone());
        writers.spawn(async move { store.swap(&key, None, Some(record("x"))).await.unwrap() });
    }
    let done = writers.join_all().await.into_iter().filter(|swapped| matches!(swapped, Swapped::Done));
    assert_eq!(done.count(), 1);
}

/// OAC-49, OAC-93: failures keep the record, and do not show it.
#[tokio::test]
async fn failures_are_kept_apart_and_show_no_secret() {
    let (mock, folder) = (mock::Store::new().unwrap(), folder("failures"));
    let platform: Platform = Arc::clone(&mock) as Platform;
    let (store, key) = (store(&platform, &folder), Key::new(&["a"]));
    store.swap(&key, None, Some(record("s3cret"))).await.unwrap();
    let fail = |error| {
        let entry = store.entry(&key).unwrap();
        entry.as_any().downcast_ref::<mock::Cred>().unwrap().set_error(error);
    };
    fail(Error::NoStorageAccess("locked".into()));
    assert!(matches!(store.load(&key).await, Err(StoreError::Unavailable(_))));
    fail(Error::TooLong("secret".to_owned(), 2560));
    assert!(matches!(store.load(&key).await, Err(StoreError::Denied(_))));
    fail(Error::BadDataFormat(b"s3cret".to_vec(), "s3cret".into()));
    let error = store.load(&key).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreadable(_)));
    assert!(!format!("{error:?} {error} {store:?}").contains("s3cret"));
    assert_eq!(store.load(&key).await.unwrap().unwrap().content(), b"s3cret");
    store.entry(&key).unwrap().set_secret(b"zz").unwrap();
    assert!(matches!(store.load(&key).await, Err(StoreError::Unreadable(_))));
    let overwritten = store.swap(&key, None, Some(record("new"))).await;
    assert!(matches!(overwritten, Err(StoreError::Unreadable(_))));
}

#[tokio::test]
async fn unfinished_logins_are_refused() {
    let (platform, folder): (Platform, _) = (mock::Store::new().unwrap(), folder("unfinished"));
    let unfinished = record("login").until(SystemTime::now());
    let refused = store(&platform, &folder).swap(&Key::new(&["a"]), None, Some(unfinished)).await;
    assert!(matches!(refused, Err(StoreError::Denied(_))));
}

/// Containers often deny the system calls of the keyring.
#[tokio::test]
async fn the_keyring_of_this_machine_stores_records() {
    let folder = folder("machine");
    let key = Key::new(&["test", &secret::random_hex::<8>().unwrap()]);
    let outcome = match platform() {
        Ok(platform) => round_trip(&store(&platform, &folder), &key).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => {}
        Err(StoreError::Unavailable(reason) | StoreError::Denied(reason)) => {
            eprintln!("SKIPPED: there is no keyring here: {reason}");
        }
        Err(error) => panic!("{error:?}"),
    }
}
