use duplexer::prelude::*;

#[tool(meta = "team")]
async fn load() -> String {
    String::new()
}

fn main() {}
