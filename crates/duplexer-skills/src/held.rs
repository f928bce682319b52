//! Entries of skills that a client holds: what it reads is checked against them.

use std::collections::BTreeMap;

use duplexer_types::json::Json;
use duplexer_types::skill::{MANIFEST, Skill, SkillResource, SkillResources};

use crate::digest;
use crate::front_matter::{FrontMatter, FrontMatterError};
use crate::name;
use crate::scan::{MAX_FILES, MAX_SKILL_SIZE};
use crate::uri;

/// Entry of a skill, checked. What is read of the skill is verified against it.
///
/// A digest shows that a file is the one that was listed. It does not show that the server can be trusted, because the
/// server makes both.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldSkill {
    entry: Skill,
    /// URI of the skill's directory.
    directory: String,
    /// The files by their paths in the skill; `None` if they are not known in advance.
    files: Option<BTreeMap<String, SkillResource>>,
    name: String,
    description: String,
}

/// Why an entry cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entry of the skill {uri} is invalid: {reason}")]
pub struct InvalidEntry {
    uri: String,
    reason: String,
}

/// Why what was read of a skill must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The file is not in the entry.
    #[error("the entry of the skill does not list `{0}`")]
    NotListed(String),
    /// The size is not that of the entry.
    #[error("{uri} has {size} bytes, and the entry of the skill lists {listed}")]
    Size {
        /// URI of the file.
        uri: String,
        /// Size of what was read.
        size: u64,
        /// Size in the entry.
        listed: u64,
    },
    /// The digest is not that of the entry.
    #[error("the digest of {0} is not the one that the entry of the skill lists")]
    Digest(String),
    /// The manifest has no valid front matter.
    #[error("the front matter of {uri} is invalid")]
    InvalidFrontMatter {
        /// URI of the manifest.
        uri: String,
        /// The fault.
        source: FrontMatterError,
    },
    /// The front matter is not that of the entry.
    #[error("the field `{field}` in the front matter of {uri} is not the one in the entry of the skill")]
    FrontMatter {
        /// URI of the manifest.
        uri: String,
        /// The first field that differs.
        field: String,
    },
}

impl HeldSkill {
    /// Checks an entry: its name, and that it lists its own manifest and every file once, inside of the skill.
    ///
    /// # Errors
    ///
    /// Fails with the first fault. An entry with more than [`MAX_FILES`](crate::MAX_FILES) files or
    /// [`MAX_SKILL_SIZE`](crate::MAX_SKILL_SIZE) bytes is one.
    pub fn new(entry: Skill) -> Result<Self, InvalidEntry> {
        let fail = |reason: String| InvalidEntry { uri: entry.uri.clone(), reason };
        let text =
            |field: &str| entry.frontmatter.get(field).and_then(|json: &Json| json.decode::<String>().ok());
        let name = text("name").ok_or_else(|| fail("it has no name".to_owned()))?;
        name::check(&name).map_err(|fault| fail(fault.to_string()))?;
        let description = text("description").ok_or_else(|| fail("it has no description".to_owned()))?;
        let directory = entry.uri.strip_suffix(MANIFEST).and_then(|uri| uri.strip_suffix('/'));
        let directory = directory.ok_or_else(|| fail(format!("its URI does not end with /{MANIFEST}")))?;
        if !directory.contains("://") || directory.rsplit('/').next() != Some(&*name) {
            return Err(fail(format!("its URI does not end with /{name}/{MANIFEST}")));
        }
        let directory = directory.to_owned();
        let files = match &entry.resources {
            SkillResources::Listed(listed) => Some(files(&directory, listed).map_err(fail)?),
            _ => None,
        };
        Ok(Self { entry, directory, files, name, description })
    }

    /// Returns the entry as the server sent it.
    pub fn entry(&self) -> &Skill {
        &self.entry
    }

    /// Returns the URI of the manifest, which identifies the skill among those of its server.
    pub fn uri(&self) -> &str {
        &self.entry.uri
    }

    /// Returns the name. Skills of several servers can have the same.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the skill is for.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the files by their paths in the skill; `None` if the server makes them on demand.
    pub fn files(&self) -> Option<impl Iterator<Item = (&str, &SkillResource)>> {
        self.files.as_ref().map(|files| files.iter().map(|(path, file)| (path.as_str(), file)))
    }

    /// Returns a text that stays the same as long as every file does. What a user has approved of a skill holds for this text
    /// and no other. `None` if the files are not known in advance.
    pub fn fingerprint(&self) -> Option<String> {
        let mut hasher = digest::Hasher::default();
        for file in self.files.as_ref()?.values() {
            // Lengths keep the parts apart.
            hasher.update(&(file.uri.len() as u64).to_be_bytes());
            hasher.update(file.uri.as_bytes());
            hasher.update(file.digest.to_ascii_lowercase().as_bytes());
        }
        Some(hasher.finish())
    }

    /// Returns the URI of a file by its path in the skill, such as `references/forms.md`.
    ///
    /// # Errors
    ///
    /// Fails if the entry does not list the file, and if the path leads out of the skill.
    pub fn uri_of(&self, path: &str) -> Result<String, VerifyError> {
        let found = match &self.files {
            Some(files) => files.get(path).map(|file| file.uri.clone()),
            None => uri::below(&self.directory, path),
        };
        found.ok_or_else(|| VerifyError::NotListed(path.to_owned()))
    }

    /// Checks the size and the digest of a file. Files of a skill that the server makes on demand have neither.
    ///
    /// # Errors
    ///
    /// Fails if one of them is not that of the entry, and if the entry does not list the file.
    pub fn verify(&self, uri: &str, bytes: &[u8]) -> Result<(), VerifyError> {
        let Some(files) = &self.files else { return Ok(()) };
        let listed = files.values().find(|file| file.uri == uri);
        let listed = listed.ok_or_else(|| VerifyError::NotListed(uri.to_owned()))?;
        let size = bytes.len() as u64;
        if size != listed.size {
            return Err(VerifyError::Size { uri: uri.to_owned(), size, listed: listed.size });
        }
        if !digest::of(bytes).eq_ignore_ascii_case(&listed.digest) {
            return Err(VerifyError::Digest(uri.to_owned()));
        }
        Ok(())
    }

    /// Checks the manifest like every file, and its front matter field by field.
    ///
    /// # Errors
    ///
    /// Fails with the first check that fails.
    pub fn verify_manifest(&self, text: &str) -> Result<FrontMatter, VerifyError> {
        let uri = || self.entry.uri.clone();
        self.verify(&self.entry.uri, text.as_bytes())?;
        let front_matter = FrontMatter::parse(text)
            .map_err(|source| VerifyError::InvalidFrontMatter { uri: uri(), source })?;
        match front_matter.difference(&self.entry.frontmatter) {
            Some(field) => Err(VerifyError::FrontMatter { uri: uri(), field }),
            None => Ok(front_matter),
        }
    }
}

/// Returns the files of an entry by their paths.
fn files(directory: &str, listed: &[SkillResource]) -> Result<BTreeMap<String, SkillResource>, String> {
    if listed.len() > MAX_FILES {
        return Err(format!("it lists more than {MAX_FILES} files"));
    }
    let size = listed.iter().fold(0_u64, |size, file| size.saturating_add(file.size));
    if size > MAX_SKILL_SIZE {
        return Err(format!("its files are larger than {MAX_SKILL_SIZE} bytes together"));
    }
    let mut files = BTreeMap::new();
    for file in listed {
        let path = uri::path_below(directory, &file.uri);
        let path = path.ok_or_else(|| format!("{} is not a file inside of it", file.uri))?;
        if !digest::is_valid(&file.digest) {
            return Err(format!("the digest of {} is not one of SHA-256", file.uri));
        }
        if files.insert(path, file.clone()).is_some() {
            return Err(format!("it lists {} twice", file.uri));
        }
    }
    if files.get(MANIFEST).is_none_or(|file| file.uri != format!("{directory}/{MANIFEST}")) {
        return Err(format!("it does not list its {MANIFEST}"));
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
