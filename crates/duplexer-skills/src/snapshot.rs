//! The skills of a server at one moment: entries, files by URI, and directories.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use duplexer_server::__private::files;
use duplexer_types::resource::ResourceDefinition;
use duplexer_types::skill::{DIRECTORY_MIME_TYPE, MANIFEST, Skill, SkillResource};

use crate::front_matter::FrontMatter;
use crate::scan::{Loaded, SkillDraft, Stamp};
use crate::uri;

/// Skills, files and directories of one scan.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// By the URI of the manifest, and so in the order of lists.
    skills: BTreeMap<String, Arc<ServedSkill>>,
    files: HashMap<String, Arc<ServedFile>>,
    /// By URI, with the children.
    directories: HashMap<String, Vec<ResourceDefinition>>,
    /// Manifests of the skills that a file or directory belongs to: several if skills are inside of each other.
    owners: HashMap<String, Vec<String>>,
}

/// A skill that is offered.
#[derive(Debug, PartialEq)]
pub(crate) struct ServedSkill {
    pub(crate) entry: Skill,
    pub(crate) front_matter: Arc<FrontMatter>,
    /// Size of the manifest in bytes.
    pub(crate) size: u64,
}

/// A file that can be read.
#[derive(Debug, PartialEq)]
pub(crate) struct ServedFile {
    pub(crate) uri: String,
    pub(crate) base: Arc<Path>,
    pub(crate) relative: String,
    pub(crate) stamp: Stamp,
    pub(crate) digest: String,
}

impl ServedFile {
    pub(crate) fn new(uri: String, base: Arc<Path>, relative: String, loaded: Loaded) -> Self {
        Self { uri, base, relative, stamp: loaded.stamp, digest: loaded.digest }
    }

    /// Whether the file is at this place.
    pub(crate) fn is_at(&self, base: &Path, relative: &str) -> bool {
        *self.base == *base && self.relative == relative
    }

    /// Whether the file has not changed since.
    pub(crate) fn is_unchanged(&self) -> bool {
        let now = files::resolve(&self.base, &self.relative).and_then(|path| path.metadata());
        now.is_ok_and(|now| Stamp::of(&now) == self.stamp)
    }

    /// Returns the media type by the name of the file; by its contents if the name has none.
    pub(crate) fn mime_type(&self) -> Option<&'static str> {
        files::mime_type(Path::new(&self.relative))
    }

    fn definition(&self) -> ResourceDefinition {
        let name = self.relative.rsplit('/').next().unwrap_or_default();
        let mut definition = ResourceDefinition::new(&*self.uri, name).size(self.stamp.size);
        definition.mime_type = self.mime_type().map(str::to_owned);
        definition
    }
}

impl ServedSkill {
    /// Returns the manifest as a resource.
    pub(crate) fn definition(&self) -> ResourceDefinition {
        ResourceDefinition::new(&*self.entry.uri, self.front_matter.name())
            .description(self.front_matter.description())
            .mime_type(MANIFEST_MIME_TYPE)
            .size(self.size)
    }
}

/// Media type of a manifest.
pub(crate) const MANIFEST_MIME_TYPE: &str = "text/markdown";

impl Snapshot {
    pub(crate) fn new(drafts: impl Iterator<Item = SkillDraft>) -> Self {
        let mut snapshot = Self::default();
        let mut directories: BTreeSet<String> = BTreeSet::new();
        for draft in drafts {
            let uri = format!("{}/{MANIFEST}", draft.directory);
            let resource =
                |file: &Arc<ServedFile>| SkillResource::new(&*file.uri, &*file.digest, file.stamp.size);
            let resources: Vec<_> = draft.files.iter().map(resource).collect();
            let entry = Skill::new(&*uri, draft.front_matter.fields().clone(), resources);
            let manifest = draft.files.iter().find(|file| file.uri == uri);
            let size = manifest.map_or(0, |file| file.stamp.size);
            for directory in draft.directories.into_iter().chain([draft.directory]) {
                snapshot.owners.entry(directory.clone()).or_default().push(uri.clone());
                directories.insert(directory);
            }
            for file in draft.files {
                snapshot.owners.entry(file.uri.clone()).or_default().push(uri.clone());
                snapshot.files.insert(file.uri.clone(), file);
            }
            let skill = ServedSkill { entry, front_matter: draft.front_matter, size };
            snapshot.skills.insert(uri, Arc::new(skill));
        }
        snapshot.directories = snapshot.children(&directories);
        snapshot
    }

    /// Returns the children of every directory, by URI.
    fn children(&self, directories: &BTreeSet<String>) -> HashMap<String, Vec<ResourceDefinition>> {
        let mut children: HashMap<String, Vec<ResourceDefinition>> =
            directories.iter().map(|directory| (directory.clone(), Vec::new())).collect();
        let below = directories.iter().map(|directory| {
            ResourceDefinition::new(&**directory, uri::name(directory)).mime_type(DIRECTORY_MIME_TYPE)
        });
        let files = self.files.values().map(|file| match self.skills.get(&file.uri) {
            Some(skill) => skill.definition(),
            None => file.definition(),
        });
        for child in below.chain(files) {
            let parent = child.uri.rsplit_once('/').map(|(parent, _)| parent);
            if let Some(siblings) = parent.and_then(|parent| children.get_mut(parent)) {
                siblings.push(child);
            }
        }
        for siblings in children.values_mut() {
            siblings.sort_by(|one, other| one.uri.cmp(&other.uri));
        }
        children
    }

    /// Returns all skills, by URI.
    pub(crate) fn skills(&self) -> &BTreeMap<String, Arc<ServedSkill>> {
        &self.skills
    }

    /// Returns the skill with this manifest.
    pub(crate) fn skill(&self, uri: &str) -> Option<&Arc<ServedSkill>> {
        self.skills.get(uri)
    }

    /// Returns the file with this URI.
    pub(crate) fn file(&self, uri: &str) -> Option<&Arc<ServedFile>> {
        self.files.get(uri)
    }

    /// Returns the children of a directory.
    pub(crate) fn directory(&self, uri: &str) -> Option<&[ResourceDefinition]> {
        self.directories.get(uri).map(Vec::as_slice)
    }

    /// Returns the manifests of the skills that a file or directory belongs to.
    pub(crate) fn owners(&self, uri: &str) -> &[String] {
        self.owners.get(uri).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the files of an earlier snapshot that have another digest now.
    pub(crate) fn updated_since(&self, earlier: &Self) -> Vec<String> {
        let is_updated = |file: &&Arc<ServedFile>| {
            earlier.file(&file.uri).is_some_and(|known| known.digest != file.digest)
        };
        self.files.values().filter(is_updated).map(|file| file.uri.clone()).collect()
    }
}
