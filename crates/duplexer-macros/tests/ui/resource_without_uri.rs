use duplexer::prelude::*;

#[resource]
async fn config() -> String {
    String::new()
}

fn main() {}
