use duplexer::Context;
use duplexer::prelude::*;

#[tool]
async fn count(word: String, cx: Context<Vec<String>>) -> usize {
    cx.state().iter().filter(|known| **known == word).count()
}

fn main() {}
