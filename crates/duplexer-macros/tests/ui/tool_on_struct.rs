use duplexer::prelude::*;

#[tool]
struct Add {
    a: i64,
}

fn main() {}
