use duplexer::prelude::*;

struct Calculator;

impl Calculator {
    #[tool]
    async fn add(&self, a: i64) -> i64 {
        a
    }
}

fn main() {}
