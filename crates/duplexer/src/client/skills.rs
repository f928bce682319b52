//! Skills of a server: loading and reading with verification. Nothing of a skill is read before it is loaded.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use duplexer_skills::{FrontMatter, HeldSkill, InvalidEntry, VerifyError};
use duplexer_types::json::Json;
use duplexer_types::methods::ResourcesDirectoryRead;
use duplexer_types::resource::{ResourceContents, ResourceDefinition};
use duplexer_types::skill::{EXTENSION, ReadDirectoryParams, Skill};

use super::{Client, ClientError};

/// Maximum number of pages of a directory.
const MAX_PAGES: usize = 128;

/// Why a skill cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// A request failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The entry of the skill is invalid.
    #[error(transparent)]
    Entry(#[from] InvalidEntry),
    /// What was read is not what the entry lists, and must not be used. The skill may have changed:
    /// [`LoadedSkill::refresh`], or [`Client::get_skill`] and [`UseSkills::load_skill`] again.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The server sent something other than the contents of the file.
    #[error("the server did not send the contents of {0}")]
    Contents(String),
    /// The server does not declare that directories can be read.
    #[error("the server does not offer to read directories")]
    NoDirectories,
    /// The server sends the pages of a directory without end.
    #[error("the directory {0} has too many pages")]
    TooManyPages(String),
}

/// Loading of skills, for a [`Client`].
///
/// ```no_run
/// use duplexer::client::prelude::*;
///
/// # async fn example(client: Client) -> Result<(), BoxError> {
/// for entry in client.all_skills().await? {
///     println!("{}: {:?}", entry.uri, entry.frontmatter.get("description"));
/// }
/// let entry = client.get_skill("skill://pdf/SKILL.md").await?.skill;
/// let skill = client.load_skill(entry).await?;
/// println!("{}", skill.instructions());
/// let forms = skill.read("references/forms.md").await?;
/// # Ok(()) }
/// ```
pub trait UseSkills {
    /// Reads the `SKILL.md` of a skill and verifies it: size, digest, and front matter field by field.
    ///
    /// # Errors
    ///
    /// Fails if the entry is invalid, if the file cannot be read, and if it is not what the entry lists.
    fn load_skill(&self, entry: Skill) -> impl Future<Output = Result<LoadedSkill, SkillError>> + Send;

    /// Returns the direct children of a directory of a skill, over all pages.
    ///
    /// # Errors
    ///
    /// Fails if a request fails, and without a request if the server does not declare that it reads directories.
    fn read_directory(
        &self,
        uri: &str,
    ) -> impl Future<Output = Result<Vec<ResourceDefinition>, SkillError>> + Send;
}

/// A skill whose `SKILL.md` has been read and verified.
#[derive(Clone, Debug)]
pub struct LoadedSkill {
    client: Client,
    held: HeldSkill,
    manifest: String,
    front_matter: FrontMatter,
}

impl LoadedSkill {
    /// Returns the verified entry: name, URI, files and fingerprint.
    pub fn held(&self) -> &HeldSkill {
        &self.held
    }

    /// Returns the front matter. A field such as `allowed-tools` is a wish of the server; nothing follows it by itself.
    pub fn front_matter(&self) -> &FrontMatter {
        &self.front_matter
    }

    /// Returns the `SKILL.md` as it was read.
    pub fn manifest(&self) -> &str {
        &self.manifest
    }

    /// Returns the instructions: the `SKILL.md` without its front matter.
    pub fn instructions(&self) -> &str {
        FrontMatter::instructions(&self.manifest)
    }

    /// Reads a file of the skill by its path, such as `references/forms.md`, and verifies it.
    ///
    /// Of a skill whose files are made on demand ([`HeldSkill::files`] is `None`) nothing can be verified.
    ///
    /// # Errors
    ///
    /// Fails if the entry does not list the path, if the file cannot be read, and if it is not what the entry lists.
    pub async fn read(&self, path: &str) -> Result<Vec<u8>, SkillError> {
        let uri = self.held.uri_of(path)?;
        let bytes = read(&self.client, &uri).await?;
        self.held.verify(&uri, &bytes)?;
        Ok(bytes)
    }

    /// Requests the entry of the skill again and loads it.
    ///
    /// # Errors
    ///
    /// Fails like [`UseSkills::load_skill`].
    pub async fn refresh(&self) -> Result<Self, SkillError> {
        let entry = self.client.get_skill(self.held.uri()).fresh().await?.skill;
        self.client.load_skill(entry).await
    }
}

impl UseSkills for Client {
    async fn load_skill(&self, entry: Skill) -> Result<LoadedSkill, SkillError> {
        let held = HeldSkill::new(entry)?;
        let bytes = read(self, held.uri()).await?;
        let manifest = String::from_utf8(bytes).map_err(|_| SkillError::Contents(held.uri().to_owned()))?;
        let front_matter = held.verify_manifest(&manifest)?;
        Ok(LoadedSkill { client: self.clone(), held, manifest, front_matter })
    }

    async fn read_directory(&self, uri: &str) -> Result<Vec<ResourceDefinition>, SkillError> {
        let settings = self.server_capabilities().extensions.as_ref().and_then(|all| all.get(EXTENSION));
        if settings.and_then(|settings: &Json| settings.member("directoryRead")) != Some("true") {
            return Err(SkillError::NoDirectories);
        }
        let (mut children, mut cursors) = (Vec::new(), HashSet::new());
        let mut params = ReadDirectoryParams::new(uri);
        loop {
            let page = self.request::<ResourcesDirectoryRead>(params).await?;
            children.extend(page.resources);
            let Some(cursor) = page.next_cursor else { return Ok(children) };
            if cursors.len() >= MAX_PAGES || !cursors.insert(cursor.clone()) {
                return Err(SkillError::TooManyPages(uri.to_owned()));
            }
            params = ReadDirectoryParams::new(uri).cursor(cursor);
        }
    }
}

/// Reads the contents of one file. The cache is not asked: it can be older than the entry.
async fn read(client: &Client, uri: &str) -> Result<Vec<u8>, SkillError> {
    let result = client.read_resource(uri).fresh().await?;
    let fault = || SkillError::Contents(uri.to_owned());
    let [contents] = <[ResourceContents; 1]>::try_from(result.contents).map_err(|_| fault())?;
    match contents {
        ResourceContents::Text(text) if text.uri == uri => Ok(text.text.into_bytes()),
        ResourceContents::Blob(blob) if blob.uri == uri => STANDARD.decode(&blob.blob).map_err(|_| fault()),
        _ => Err(fault()),
    }
}
