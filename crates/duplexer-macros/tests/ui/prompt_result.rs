use duplexer::prelude::*;

#[prompt]
async fn review(code: String) -> u8 {
    0
}

fn main() {}
