//! Files that commands read and write, and commands that answer in place of a model.

use std::fs;
use std::path::PathBuf;

use crate::support::{Demo, Place, run};

/// A folder of its own for a test. It is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("duplexer-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_argument_can_be_the_text_or_the_json_of_a_file() {
    let (demo, folder) = (Demo::start(), Folder::new("arguments"));
    fs::write(folder.file("text"), "from a file").unwrap();
    fs::write(folder.file("number"), "40\n").unwrap();
    for place in Place::all(&demo) {
        let from = |name: &str, sign: &str| {
            format!("{name}{sign}@{}", folder.file(if sign == "=" { "text" } else { "number" }))
        };
        assert_eq!(place.run(&["call", "echo", &from("text", "=")]).ok(), "from a file\n");
        assert_eq!(place.run(&["call", "add", &from("a", ":="), "b:=2"]).ok(), "{\n  \"sum\": 42.0\n}\n");
        assert_eq!(place.run(&["call", "echo", "text=@@ada"]).ok(), "@ada\n");
        assert_eq!(
            place.run(&["prompt", "review", &from("text", "=")]).ok().lines().last(),
            Some("user: from a file")
        );
    }
}

#[test]
fn pictures_blobs_and_texts_are_written_into_files() {
    let (demo, folder) = (Demo::start(), Folder::new("output"));
    for place in Place::all(&demo) {
        let file = folder.file("dot.png");
        let shown = place.run(&["call", "picture", "--output", &file]).ok();
        assert_eq!(shown, format!("One red pixel:\n[picture, image/png, 70 bytes; in {file}]\n"));
        let picture = fs::read(&file).unwrap();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() == 70);
        fs::remove_file(&file).unwrap();
        assert_eq!(place.run(&["read", "demo://dot.png", "-o", &file]).ok(), "");
        assert_eq!(fs::read(&file).unwrap(), picture);
        let write = |words: &[&str]| {
            let file = folder.file("text");
            assert_eq!(place.run(&[words, &["--output", &file]].concat()).ok(), "");
            fs::read_to_string(file).unwrap()
        };
        assert_eq!(write(&["call", "echo", "text=x"]), "x\n");
        assert_eq!(write(&["read", "demo://readme"]), "One server, every revision.");
        assert!(write(&["call", "picture", "--json"]).starts_with('{'));
        assert!(write(&["list", "tools"]).starts_with("Tools\n"));
    }
}

#[test]
fn the_server_learns_of_the_given_folders() {
    let (demo, folder) = (Demo::start(), Folder::new("roots"));
    for place in Place::all(&demo) {
        let path = fs::canonicalize(&folder.0).unwrap();
        let shown = place.run(&["call", "folders", "--root", &folder.file(""), "--root", "/"]).ok();
        assert_eq!(shown, format!("file://{}\nfile:///\n", path.display()));
        let ran = place.run(&["call", "folders"]);
        assert_ne!(ran.code, Some(0), "without --root the client has no roots: {ran:?}");
    }
}

#[test]
fn a_command_answers_in_place_of_a_model() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let ask = |command: &str| place.run(&["call", "consult", "question=How far?", "--sample", command]);
        let answer = "grep -q '\"How far?\"' && echo 'Ten miles.'";
        assert_eq!(ask(answer).ok(), "Ten miles.\n");
        let failed = ask("exit 7");
        assert_ne!(failed.code, Some(0));
        assert!(failed.stderr.contains("the command of --sample failed: exit status: 7"), "{failed:?}");
    }
}

#[test]
fn one_entry_is_listed_with_its_schemas() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let shown = place.run(&["list", "add"]).ok();
        assert!(shown.starts_with("Tools\n  add(a: number, b: number)\n      Adds two numbers."), "{shown}");
        assert_eq!(shown.lines().filter(|line| !line.starts_with(' ')).count(), 1, "{shown}");
        let shown = place.run(&["list", "add", "--schema"]).ok();
        let (_, schema) = shown.split_once("inputSchema:\n").unwrap();
        let (input, output) = schema.split_once("    outputSchema:\n").unwrap();
        for (schema, member) in [(input, "a"), (output, "sum")] {
            let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
            assert!(schema["properties"][member].is_object(), "{shown}");
        }
        assert!(place.run(&["list", "demo://clock"]).ok().starts_with("Resources\n  demo://clock"));
        assert!(place.run(&["list", "greet", "--json"]).json()["prompts"][0]["arguments"].is_array());
    }
    assert_eq!(run(&["list", "http://a/mcp", "--schema", "--json"]).code, Some(2));
}

/// The members of a result keep the order in which the server sent them.
#[test]
fn json_is_printed_as_the_server_sent_it() {
    let script = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}'; read line; read line; echo '{"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{"table":"t","rows":[1.50]}}}'; read line"#;
    let ran = run(&["call", "x", "--era", "handshake", "--", "sh", "-c", script]);
    assert_eq!(ran.ok(), "{\n  \"table\": \"t\",\n  \"rows\": [\n    1.50\n  ]\n}\n");
}
