//! Real processes that share a file store. Each is this test binary, which runs [`process`] alone.
#![cfg(unix)]

use std::env;
use std::io::BufRead;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use duplexer_oauth::{FileCredentials, OAuth, OAuthBuilder};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use crate::mock::{Mock, Seen};
use crate::refresh::rotating;
use crate::site::{Person, Time, connect, tool};
use crate::stores::folder;

const ROLE: &str = "DUPLEXER_OAUTH_TEST_ROLE";
const URL: &str = "DUPLEXER_OAUTH_TEST_URL";
const FOLDER: &str = "DUPLEXER_OAUTH_TEST_FOLDER";
const NOW: &str = "DUPLEXER_OAUTH_TEST_NOW";
/// Seconds after which the tokens of the scripted server are due.
const DUE: u64 = 3590;

/// A process of this test binary.
struct Process {
    child: Child,
    output: Lines<BufReader<ChildStderr>>,
}

impl Process {
    fn start(role: &str, mock: &Mock, folder: &Path, now: u64) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["processes::process", "--exact", "--ignored", "--nocapture"]);
        command.env(ROLE, role).env(URL, mock.url()).env(FOLDER, folder).env(NOW, now.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, output }
    }

    /// Waits for a line of output.
    async fn says(&mut self, expected: &str) {
        let mut others = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            if line == expected {
                return;
            }
            others.push(line);
        }
        panic!("the process has ended without '{expected}': {others:?}");
    }

    async fn proceed(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").await.unwrap();
    }

    async fn end(mut self) -> ExitStatus {
        self.child.wait().await.unwrap()
    }
}

#[expect(clippy::print_stderr, reason = "the process that started this one reads it")]
fn say(line: &str) {
    eprintln!("{line}");
}

/// What the other processes do. It does nothing if the whole file is run with `--ignored`.
#[test]
#[ignore = "the other tests start it in processes of their own"]
fn process() {
    let Ok(role) = env::var(ROLE) else { return };
    let now = Arc::new(Mutex::new(env::var(NOW).unwrap().parse::<u64>().unwrap()));
    let time = Arc::clone(&now);
    let builder = OAuth::login_with_browser("test")
        .store(FileCredentials::at(env::var(FOLDER).unwrap()).unwrap())
        .clock(move || UNIX_EPOCH + Duration::from_secs(*time.lock().unwrap()));
    let url = env::var(URL).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match role.as_str() {
            "refresh" => refresh(builder, &url, &now).await,
            "hang in a login" => hang(builder, &url).await,
            "log in" => log_in(builder, &url).await,
            other => panic!("unknown role {other}"),
        }
    });
}

/// Uses a token that all processes have in memory, and uses it again when it is due.
async fn refresh(builder: OAuthBuilder, url: &str, now: &Mutex<u64>) {
    let no_browser = |_: String| async { Err("a process has lost its token".into()) };
    let client = connect(url, &builder.present(no_browser).build().unwrap()).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "done");
    say("ready");
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
    *now.lock().unwrap() += DUE;
    say("going");
    assert_eq!(tool(&client, "x").await.unwrap(), "done");
}

async fn hang(builder: OAuthBuilder, url: &str) {
    let waiting = |_: String| async {
        say("waiting");
        std::future::pending().await
    };
    connect(url, &builder.present(waiting).build().unwrap()).await.unwrap();
}

async fn log_in(builder: OAuthBuilder, url: &str) {
    let person = Person::default();
    let client = connect(url, &builder.present(person.browser()).build().unwrap()).await.unwrap();
    assert_eq!((tool(&client, "x").await.unwrap().as_str(), person.times()), ("done", 1));
}

/// Number of processes that have begun to refresh. The scripted server answers no refresh before all have.
#[derive(Clone, Default)]
struct Begun(Arc<(Mutex<usize>, Condvar)>);

impl Begun {
    fn add(&self) {
        *self.0.0.lock().unwrap() += 1;
        self.0.1.notify_all();
    }

    fn wait_for(&self, wanted: usize) {
        let (count, changed) = &*self.0;
        let limit = Duration::from_secs(60);
        let begun = changed.wait_timeout_while(count.lock().unwrap(), limit, |count| *count < wanted);
        assert!(!begun.unwrap().1.timed_out(), "a process has not begun to refresh");
    }
}

/// OAC-47, OAC-49, OAC-95: two processes that have the same refresh token in memory spend it once, at an authorization
/// server that revokes everything after a second use.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_refresh_once() {
    let (folder, begun, rounds) = (folder("two"), Begun::default(), Arc::new(AtomicUsize::new(0)));
    let (rotate, all, round) = (rotating(), begun.clone(), Arc::clone(&rounds));
    let mock = Mock::new(move |mock, seen| {
        if seen.path == "/token" && seen.form()["grant_type"] == "refresh_token" {
            all.wait_for(2 * round.load(Ordering::SeqCst));
        }
        rotate(mock, seen)
    })
    .await;
    let (time, person) = (Time::new(), Person::default());
    let login = OAuth::login_with_browser("test").present(person.browser()).clock(time.clock());
    let login = login.store(FileCredentials::at(folder.path()).unwrap()).build().unwrap();
    connect(&mock.url(), &login).await.unwrap();
    let mut now = time.clock()().duration_since(UNIX_EPOCH).unwrap().as_secs();
    for number in 1..=3 {
        rounds.store(number, Ordering::SeqCst);
        let start = || Process::start("refresh", &mock, folder.path(), now);
        let (mut one, mut two) = (start(), start());
        tokio::join!(one.says("ready"), two.says("ready"));
        tokio::join!(one.proceed(), two.proceed());
        for process in [&mut one, &mut two] {
            process.says("going").await;
            begun.add();
        }
        let (one, two) = tokio::join!(one.end(), two.end());
        assert!(one.success() && two.success(), "round {number}: {one}, {two}");
        let forms: Vec<_> = mock.seen("/token").iter().map(Seen::form).collect();
        let spent: Vec<_> = forms.iter().filter_map(|form| form.get("refresh_token").cloned()).collect();
        let expected: Vec<_> = (1..=number).map(|token| format!("rt-{token}")).collect();
        assert_eq!(spent, expected);
        now += DUE;
    }
    assert_eq!(person.times(), 1);
}

/// OAC-26, OAC-95: a process that is killed during the login of its person has stored its registration.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_has_stored_its_registration() {
    use std::os::unix::process::ExitStatusExt;

    let folder = folder("killed");
    let mock = Mock::new(|_, _| None).await;
    let mut killed = Process::start("hang in a login", &mock, folder.path(), 1_800_000_000);
    killed.says("waiting").await;
    // SIGKILL
    killed.child.start_kill().unwrap();
    assert_eq!(killed.end().await.signal(), Some(9));
    assert_eq!((mock.seen("/register").len(), mock.seen("/token").len()), (1, 0));
    let restarted = Process::start("log in", &mock, folder.path(), 1_800_000_000);
    assert!(restarted.end().await.success());
    assert_eq!((mock.seen("/register").len(), mock.seen("/token").len()), (1, 1));
    let registered = &mock.seen("/register")[0].json()["redirect_uris"][0];
    assert_eq!(mock.seen("/authorize")[0].query["redirect_uri"].as_str(), registered.as_str().unwrap());
}
