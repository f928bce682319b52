use duplexer::prelude::*;

#[resource("config://app")]
async fn config(name: String) -> String {
    name
}

fn main() {}
