//! The handlers: lists and entries of skills, directories, and the contents of files.
//!
//! What a client sends is compared with the URIs of the snapshot and never becomes a path.

use std::any::Any;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use duplexer_core::dispatch::BoxFuture;
use duplexer_server::resource::{Resource, ResourceError};
use duplexer_server::{Context, McpError};
use duplexer_types::error::ErrorCode;
use duplexer_types::page::PaginatedParams;
use duplexer_types::resource::{ReadResourceParams, ResourceContents};
use duplexer_types::skill::{
    GetSkillParams, GetSkillResult, ListSkillsResult, ReadDirectoryParams, ReadDirectoryResult,
};
use duplexer_types::wire::CacheScope;
use serde::Deserialize;

use crate::library::Library;
use crate::scan::{Keep, LoadError, MAX_SKILL_SIZE, load};
use crate::snapshot::{MANIFEST_MIME_TYPE, ServedFile, ServedSkill, Snapshot};

/// Maximum number of skills on a page. An entry names up to 512 files.
const SKILLS_PER_PAGE: usize = 50;

/// Maximum number of children of a directory on a page.
const CHILDREN_PER_PAGE: usize = 200;

/// Number of times that a file is read before it counts as one that keeps changing.
const ATTEMPTS: usize = 3;

fn invalid(text: impl Into<String>) -> McpError {
    McpError::new(ErrorCode::INVALID_PARAMS, text.into())
}

/// Returns one page of the skills that the caller can see.
pub(crate) fn list<S>(
    library: &Library,
    cx: &Context<S>,
    params: &PaginatedParams,
) -> Result<ListSkillsResult, McpError> {
    let snapshot = library.snapshot();
    // A cursor is the last URI of the page before, so pages stay whole when skills come and go.
    let after = params.cursor.as_deref();
    if after.is_some_and(|cursor| !cursor.ends_with("/SKILL.md")) {
        return Err(invalid("Invalid cursor"));
    }
    let rest = snapshot.skills().iter().filter(|(uri, _)| after.is_none_or(|after| uri.as_str() > after));
    let mut visible = rest.filter(|(uri, _)| cx.sees_resource(uri)).map(|(_, skill)| skill.entry.clone());
    let skills: Vec<_> = visible.by_ref().take(SKILLS_PER_PAGE).collect();
    let next = visible.next().and_then(|_| skills.last().map(|last| last.uri.clone()));
    // Which skills a caller sees can depend on the caller.
    let mut page = ListSkillsResult::new(skills).cache_scope(CacheScope::Private);
    page.next_cursor = next;
    Ok(page)
}

/// Returns the entry of one skill.
pub(crate) fn get<S>(
    library: &Library,
    cx: &Context<S>,
    params: &GetSkillParams,
) -> Result<GetSkillResult, McpError> {
    let snapshot = library.snapshot();
    let skill = snapshot.skill(&params.uri).filter(|_| cx.sees_resource(&params.uri));
    let skill = skill.ok_or_else(|| invalid(format!("Unknown skill: {}", params.uri)))?;
    Ok(GetSkillResult::new(skill.entry.clone()).cache_scope(CacheScope::Private))
}

/// Returns one page of the children of a directory.
pub(crate) fn directory<S>(
    library: &Library,
    cx: &Context<S>,
    params: &ReadDirectoryParams,
) -> Result<ReadDirectoryResult, McpError> {
    let snapshot = library.snapshot();
    let children = snapshot.directory(&params.uri).filter(|_| is_visible(&snapshot, cx, &params.uri));
    let children = children.ok_or_else(|| invalid(format!("Not a directory of a skill: {}", params.uri)))?;
    let after = params.cursor.as_deref();
    if after.is_some_and(|cursor| !cursor.starts_with(&params.uri)) {
        return Err(invalid("Invalid cursor"));
    }
    let mut rest = children.iter().filter(|child| after.is_none_or(|after| child.uri.as_str() > after));
    let page: Vec<_> = rest.by_ref().take(CHILDREN_PER_PAGE).cloned().collect();
    let next = rest.next().and_then(|_| page.last().map(|last| last.uri.clone()));
    let mut result = ReadDirectoryResult::new(page);
    result.next_cursor = next;
    Ok(result)
}

/// Whether the caller can see a skill that the file or directory belongs to.
fn is_visible<S>(snapshot: &Snapshot, cx: &Context<S>, uri: &str) -> bool {
    snapshot.owners(uri).iter().any(|manifest| cx.sees_resource(manifest))
}

/// Returns the resource of a manifest.
pub(crate) fn manifest<S: Any + Send + Sync>(library: &Arc<Library>, skill: &ServedSkill) -> Resource<S> {
    let definition = skill.definition();
    let resource = Resource::new::<_, fn(Context<S>)>(definition.uri, reader(library));
    let resource = resource.name(definition.name).mime_type(MANIFEST_MIME_TYPE).size(skill.size);
    resource.description(skill.front_matter.description())
}

/// Everything behind the scheme. The URI itself is compared, so the value is not used.
#[derive(Deserialize)]
struct Anything {
    #[expect(dead_code, reason = "the template needs a variable")]
    path: String,
}

/// Returns the template of all other files.
pub(crate) fn template<S: Any + Send + Sync>(library: &Arc<Library>) -> Resource<S> {
    let read = reader(library);
    Resource::template::<_, _, fn(Context<S>, Anything)>(
        "skill://{+path}",
        move |cx: Context<S>, _: Anything| read(cx),
    )
    .name("skill-file")
    .description("A file of a skill, as the entry of the skill lists it")
}

/// The contents of a file that is being read.
type Reading = BoxFuture<'static, Result<ResourceContents, ResourceError>>;

/// Returns the function that reads the file of the request.
fn reader<S: Any + Send + Sync>(
    library: &Arc<Library>,
) -> impl Fn(Context<S>) -> Reading + Send + Sync + 'static {
    let library = Arc::clone(library);
    move |cx| {
        let library = Arc::clone(&library);
        Box::pin(async move {
            let ReadResourceParams { uri, .. } = cx.params()?;
            read(&library, &cx, &uri).await
        })
    }
}

/// Reads a file as it is listed. If its contents have changed, the entries follow before the client gets them.
async fn read<S>(library: &Library, cx: &Context<S>, uri: &str) -> Result<ResourceContents, ResourceError> {
    for _ in 0..ATTEMPTS {
        let snapshot = library.snapshot();
        let file = snapshot.file(uri).filter(|_| is_visible(&snapshot, cx, uri));
        let file = Arc::clone(file.ok_or(ResourceError::NotFound)?);
        let reading = Arc::clone(&file);
        let loaded = tokio::task::spawn_blocking(move || {
            load(&reading.base, &reading.relative, MAX_SKILL_SIZE, Keep::Contents)
        });
        match loaded.await.map_err(|error| ResourceError::Internal(error.into()))? {
            Ok(loaded) if loaded.digest == file.digest => return Ok(contents(&file, loaded.bytes)),
            Err(LoadError::Io(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(ResourceError::Internal(error.into()));
            }
            _ => library.refresh(uri).await,
        }
    }
    Err(ResourceError::new(LoadError::Changing.to_string()))
}

/// Returns bytes as text if they are UTF-8, without changing any.
fn contents(file: &ServedFile, bytes: Vec<u8>) -> ResourceContents {
    match String::from_utf8(bytes) {
        Ok(text) => {
            ResourceContents::text(&*file.uri, text).mime_type(file.mime_type().unwrap_or("text/plain"))
        }
        Err(error) => ResourceContents::blob(&*file.uri, STANDARD.encode(error.as_bytes()))
            .mime_type(file.mime_type().unwrap_or("application/octet-stream")),
    }
}
