use duplexer::prelude::*;

#[tool(blocking)]
async fn digest(text: String) -> String {
    text
}

fn main() {}
