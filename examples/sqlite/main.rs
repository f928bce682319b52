//! An explorer of `SQLite` databases: blocking tools with progress and a time limit, resources with completion, errors of another crate.
//!
//! Run: `cargo run -p duplexer-examples --bin sqlite -- some.db`, as the command of a host.
//! Try: `list_tables`, then `query` with a statement, then `count_rows`; read `sqlite://tables/NAME`.
//! Then break it: `query` with a misspelled column shows the model why, and with `delete from users` why not.

use std::{collections::BTreeMap, path::PathBuf};

use duplexer::prelude::*;
use duplexer::{AsJson, Context, HandlerError, completion::CompletionRequest};
use rusqlite::{Connection, OpenFlags, OptionalExtension, limits::Limit, types::ValueRef};
use serde_json::Value;

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    truncated: bool,
}

/// Opens the database for one call. A statement stops when the call is cancelled or exceeds its time limit.
fn open(cx: &Context<PathBuf>) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(cx.state(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let call = cx.clone();
    db.progress_handler(10_000, Some(move || call.is_cancelled()))?;
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, 1_000_000).map(|_| db)
}

fn tables(cx: &Context<PathBuf>) -> rusqlite::Result<Vec<String>> {
    let db = open(cx)?;
    let mut found = db.prepare("select name from sqlite_schema where type = 'table' order by name")?;
    found.query_map([], |row| row.get(0))?.collect()
}

fn to_json(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => format!("<{} bytes>", bytes.len()).into(),
    }
}

/// Lists the tables of the database.
#[tool(read_only, blocking)]
fn list_tables(cx: Context<PathBuf>) -> Result<Vec<String>, HandlerError> {
    tables(&cx).or_show()
}

/// Runs one SELECT statement.
#[tool(read_only, blocking, timeout = 30)]
fn query(
    cx: Context<PathBuf>,
    /// The statement, such as `select * from users`.
    sql: String,
    /// Maximum number of rows.
    #[schemars(range(min = 1, max = 1000))]
    #[default(100)]
    limit: usize,
) -> Result<Table, ToolError> {
    let db = open(&cx).or_hide()?;
    let mut select = db.prepare(&sql).or_show()?;
    if !select.readonly() {
        return Err("Only statements that read are allowed.".into());
    }
    let columns: Vec<String> = select.column_names().into_iter().map(Into::into).collect();
    let found = select.query_map([], |row| (0..columns.len()).map(|i| row.get_ref(i).map(to_json)).collect());
    let rows: Vec<Vec<Value>> = found.or_show()?.take(limit + 1).collect::<Result<_, _>>().or_show()?;
    Ok(Table { columns, truncated: rows.len() > limit, rows: rows.into_iter().take(limit).collect() })
}

/// Counts the rows of every table.
#[tool(read_only, blocking, timeout = 60)]
fn count_rows(cx: Context<PathBuf>) -> Result<BTreeMap<String, i64>, ToolError> {
    let (db, tables) = (open(&cx).or_hide()?, tables(&cx).or_show()?);
    let (total, mut counts) = (tables.len(), BTreeMap::new());
    for (done, table) in tables.into_iter().enumerate() {
        cx.progress(done).total(total).message(&table).blocking_send();
        let count = format!("select count(*) from \"{}\"", table.replace('"', "\"\""));
        counts.insert(table, db.query_row(&count, [], |row| row.get(0)).or_show()?);
    }
    Ok(counts)
}

async fn names(cx: Context<PathBuf>, request: CompletionRequest) -> Result<Vec<String>, McpError> {
    Ok(request.filter(tables(&cx).or_hide()?))
}

/// The names of all tables.
#[resource("sqlite://tables")]
async fn all_tables(cx: Context<PathBuf>) -> Result<AsJson<Vec<String>>, ResourceError> {
    Ok(AsJson(tables(&cx).or_hide()?))
}

/// The statement that created a table.
#[resource("sqlite://tables/{table}", mime_type = "application/sql")]
async fn schema(cx: Context<PathBuf>, #[complete(names)] table: String) -> Result<String, ResourceError> {
    let statement = "select sql from sqlite_schema where type = 'table' and name = ?1";
    let found = open(&cx).or_hide()?.query_row(statement, [table], |row| row.get(0));
    found.optional().or_hide()?.ok_or(ResourceError::NotFound)
}

fn main() -> Result<(), BoxError> {
    let path = std::fs::canonicalize(std::env::args_os().nth(1).ok_or("usage: sqlite FILE")?)?;
    let server = Server::builder("sqlite-explorer", env!("CARGO_PKG_VERSION"))
        .instructions("Start with list_tables, then query.")
        .state(path)
        .tool(list_tables)
        .tool(query)
        .tool(count_rows)
        .resource(all_tables)
        .resource(schema)
        .build()?;
    Ok(run_stdio(&server)?)
}
