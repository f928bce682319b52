//! The skills extension (`io.modelcontextprotocol/skills`): directories of instructions for models, offered as resources.
//!
//! A skill is a directory with a `SKILL.md`, whose front matter has a name and a description. [`Skills`] offers every
//! skill below a directory. [`HeldSkill`] verifies what a client reads of a skill; `duplexer::client` uses it.
//!
//! ```no_run
//! # use duplexer_server::Server;
//! use duplexer_skills::Skills;
//!
//! let server = Server::builder("docs", "1.0.0").extend(Skills::new().directory("skills")).build()?;
//! # Ok::<_, duplexer_server::BuildError>(())
//! ```

mod digest;
mod front_matter;
mod held;
mod library;
mod name;
mod scan;
mod serve;
mod snapshot;
mod uri;

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use duplexer_server::{Context, Extension, ServerBuilder};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::skill::{EXTENSION, GetSkillParams, ReadDirectoryParams};
use duplexer_types::version::Window;

use self::library::Library;
use self::scan::Root;

pub use front_matter::{FrontMatter, FrontMatterError, MAX_DEPTH, MAX_FRONT_MATTER};
pub use held::{HeldSkill, InvalidEntry, VerifyError};
pub use scan::{MAX_FILES, MAX_SKILL_SIZE, SkillFault};

/// Extension that offers the skills below directories, in every revision of the protocol.
///
/// The URI of a skill follows from its path: `billing/refunds` in a directory is `skill://billing/refunds/SKILL.md`. Its
/// name is the name of its directory. Skills can be inside of each other.
///
/// Hidden files (`.name`) are not offered, and neither are links that lead out of the directory. A skill that is broken, or
/// that has more than [`MAX_FILES`] files or [`MAX_SKILL_SIZE`] bytes, fails [`build`](ServerBuilder::build) with the file
/// and line of the fault. While the server runs such a skill is left out and logged.
///
/// A caller sees a skill if it [sees](ServerBuilder::visible) the resource of its `SKILL.md`.
#[derive(Clone, Debug)]
pub struct Skills {
    roots: Vec<Root>,
    interval: Duration,
}

/// Time between two looks at the directories, unless it is set.
const INTERVAL: Duration = Duration::from_secs(2);

/// Minimum time between two looks at the directories.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

impl Default for Skills {
    fn default() -> Self {
        Self::new()
    }
}

impl Skills {
    /// Creates the extension without skills.
    pub fn new() -> Self {
        Self { roots: Vec::new(), interval: INTERVAL }
    }

    /// Adds every skill below a directory, or the directory itself if it has a `SKILL.md`.
    #[must_use]
    pub fn directory(self, path: impl Into<PathBuf>) -> Self {
        self.directory_under("", path)
    }

    /// Adds every skill below a directory; their URIs begin with `skill://` and `under`, such as `acme/billing`.
    #[must_use]
    pub fn directory_under(mut self, under: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        self.roots.push(Root { path: path.into(), under: under.into() });
        self
    }

    /// Sets the time after which a change on disk is found and subscribed clients are notified, at most. Default: two
    /// seconds.
    ///
    /// A file that is read is always the file on disk: entries that no longer fit it are corrected first.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(MIN_INTERVAL);
        self
    }
}

impl<S: Any + Send + Sync> Extension<S> for Skills {
    fn id(&self) -> &str {
        EXTENSION
    }

    fn settings(&self) -> Json {
        JsonObject::new().with("directoryRead", Json::from(serde_json::Value::Bool(true))).into()
    }

    fn window(&self) -> Window {
        Window::ALWAYS
    }

    fn install(self, builder: ServerBuilder<S>) -> ServerBuilder<S> {
        let library = match Library::open(self.roots) {
            Ok(library) => library,
            Err(faults) => return faults.into_iter().fold(builder, ServerBuilder::fail),
        };
        let snapshot = library.snapshot();
        let manifests = snapshot.skills().values().map(|skill| serve::manifest::<S>(&library, skill));
        let builder = manifests.fold(builder, ServerBuilder::resource);
        let builder = builder.resource(serve::template::<S>(&library)).dynamic_resources();
        let [listed, found, read] = [(); 3].map(|()| Arc::clone(&library));
        let interval = self.interval;
        builder
            .on(methods::SkillsList, move |cx: Context<S>, params: PaginatedParams| {
                std::future::ready(serve::list(&listed, &cx, &params))
            })
            .on(methods::SkillsGet, move |cx: Context<S>, params: GetSkillParams| {
                std::future::ready(serve::get(&found, &cx, &params))
            })
            .on(methods::ResourcesDirectoryRead, move |cx: Context<S>, params: ReadDirectoryParams| {
                std::future::ready(serve::directory(&read, &cx, &params))
            })
            .while_running(move |cx| Arc::clone(&library).watch(cx, interval))
    }
}
