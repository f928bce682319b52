//! Skills: directories of instructions that a server offers as resources. The messages of the skills extension.

use serde::de::Error as _;

use crate::json::{Json, JsonObject};
use crate::model::{model, read_from_json};
use crate::resource::ResourceDefinition;
use crate::wire::{Shape, Wire};

/// Identifier of the skills extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// File at the root of a skill that begins with its front matter.
pub const MANIFEST: &str = "SKILL.md";

/// Media type of directories in a [`ReadDirectoryResult`].
pub const DIRECTORY_MIME_TYPE: &str = "inode/directory";

model! {
    /// [Entry](https://modelcontextprotocol.io/seps/2640-skills-extension) of a skill: its front matter, and the files that it consists of.
    pub struct Skill {
        /// URI of the skill's `SKILL.md`.
        uri: String = "uri",
        /// Front matter of the `SKILL.md`, as JSON.
        frontmatter: JsonObject = "frontmatter",
        /// Files of the skill.
        resources: SkillResources = "resources",
    }
}

model! {
    /// [File](https://modelcontextprotocol.io/seps/2640-skills-extension) of a skill.
    pub struct SkillResource {
        /// URI of the file.
        uri: String = "uri",
        /// Digest of the file: `sha256:` and 64 hexadecimal digits.
        digest: String = "digest",
        /// Size of the file in bytes.
        size: u64 = "size" as number,
    }
}

/// Files of a skill.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum SkillResources {
    /// Every file once, the `SKILL.md` included.
    Listed(Vec<SkillResource>),
    /// The server makes the files on demand, so their contents are not known in advance.
    Dynamic,
}

/// The text that a dynamic skill has instead of its files.
const DYNAMIC: &str = "dynamic";

impl From<Vec<SkillResource>> for SkillResources {
    fn from(files: Vec<SkillResource>) -> Self {
        Self::Listed(files)
    }
}

impl Wire for SkillResources {
    fn write<S: serde::Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Listed(files) => files.write(shape, serializer),
            Self::Dynamic => serializer.serialize_str(DYNAMIC),
        }
    }
}

impl serde::Serialize for SkillResources {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

impl SkillResources {
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        if json.as_str().starts_with('[') {
            return json.decode().map(Self::Listed);
        }
        match json.decode::<String>().as_deref() {
            Ok(DYNAMIC) => Ok(Self::Dynamic),
            _ => Err(serde_json::Error::custom("expected a list of files, or \"dynamic\"")),
        }
    }
}

read_from_json!(SkillResources);

model! {
    /// Result of a [`skills/list`](https://modelcontextprotocol.io/seps/2640-skills-extension) request: one page of skills.
    #[doc(alias = "skills/list")]
    pub cacheable result ListSkillsResult {
        /// The skills of this page.
        skills: Vec<Skill> = "skills",
    } optional {
        /// Cursor of the next page. Absent on the last page.
        next_cursor: String = "nextCursor",
    }
}

model! {
    /// Parameters of a [`skills/get`](https://modelcontextprotocol.io/seps/2640-skills-extension) request.
    #[doc(alias = "skills/get")]
    pub struct GetSkillParams {
        /// URI of the skill's `SKILL.md`.
        uri: String = "uri",
    }
}

model! {
    /// Result of a [`skills/get`](https://modelcontextprotocol.io/seps/2640-skills-extension) request.
    #[doc(alias = "skills/get")]
    pub cacheable result GetSkillResult {
        /// The skill.
        skill: Skill = "skill",
    }
}

model! {
    /// Parameters of a [`resources/directory/read`](https://modelcontextprotocol.io/seps/2640-skills-extension) request.
    #[doc(alias = "resources/directory/read")]
    pub struct ReadDirectoryParams {
        /// URI of the directory.
        uri: String = "uri",
    } optional {
        /// Cursor from the `nextCursor` of the previous page. Absent for the first page.
        cursor: String = "cursor",
    }
}

model! {
    /// Result of a [`resources/directory/read`](https://modelcontextprotocol.io/seps/2640-skills-extension) request: one page of the direct children of a directory.
    #[doc(alias = "resources/directory/read")]
    pub result ReadDirectoryResult {
        /// The children of this page. A directory has the media type `inode/directory`.
        resources: Vec<ResourceDefinition> = "resources",
    } optional {
        /// Cursor of the next page. Absent on the last page.
        next_cursor: String = "nextCursor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SKL-06: the files are a list, or the word `dynamic`.
    #[test]
    fn the_files_of_a_skill_are_a_list_or_dynamic() {
        let read = |files: &str| {
            let text = format!(r#"{{"uri":"skill://a/SKILL.md","frontmatter":{{}},"resources":{files}}}"#);
            serde_json::from_str::<Skill>(&text).map(|skill| skill.resources)
        };
        assert_eq!(read(r#""dynamic""#).unwrap(), SkillResources::Dynamic);
        assert_eq!(read("[]").unwrap(), SkillResources::Listed(Vec::new()));
        let file = read(r#"[{"uri":"skill://a/SKILL.md","digest":"sha256:0","size":1}]"#).unwrap();
        assert!(matches!(file, SkillResources::Listed(files) if files[0].size == 1));
        for wrong in ["null", "{}", r#""static""#, "[1]", r#"[{"uri":"a","digest":"b","size":-1}]"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
