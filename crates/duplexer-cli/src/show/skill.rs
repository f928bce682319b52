//! Skills as text.

use duplexer::Json;
use duplexer::client::LoadedSkill;
use duplexer::types::skill::{Skill, SkillResources};

use super::listing::paragraphs;
use crate::text::{Style, Text, lines};

/// Formats the entries of skills under a heading: URI, then description. Lines fit into `columns`, if it is given.
pub(crate) fn skills(entries: &[Skill], columns: Option<usize>) -> Text {
    let mut all = vec![Text::new().then(Style::Heading, "Skills")];
    if entries.is_empty() {
        all.push(Text::new().then(Style::Faint, "  none"));
    }
    for entry in entries {
        let files = match &entry.resources {
            SkillResources::Listed(files) => format!(" ({})", counted(files.len(), "file")),
            _ => " (files on demand)".to_owned(),
        };
        let line =
            Text::plain("  ").then(Style::Name, name(entry)).then(Style::Plain, format!("  {}", entry.uri));
        all.push(line.then(Style::Faint, files));
        all.extend(paragraphs(&field(entry, "description"), columns));
    }
    lines(all)
}

/// Formats a skill that was loaded: its fields, its files, and its instructions.
pub(crate) fn loaded_skill(skill: &LoadedSkill, columns: Option<usize>) -> Text {
    let held = skill.held();
    let mut all =
        vec![Text::new().then(Style::Name, held.name()).then(Style::Plain, format!("  {}", held.uri()))];
    all.extend(paragraphs(held.description(), columns));
    for (name, value) in
        skill.front_matter().fields().iter().filter(|(name, _)| !matches!(*name, "name" | "description"))
    {
        let value = value.decode::<String>().unwrap_or_else(|_| value.as_str().to_owned());
        all.push(Text::plain("  ").then(Style::Faint, format!("{name}: ")).then(Style::Plain, value));
    }
    all.push(Text::new().then(Style::Heading, "Files"));
    match held.files() {
        Some(files) => all.extend(files.map(|(path, file)| {
            Text::plain("  ")
                .then(Style::Name, path)
                .then(Style::Faint, format!("  {}", counted(file.size, "byte")))
        })),
        None => all.push(Text::new().then(Style::Faint, "  made on demand")),
    }
    all.push(Text::new().then(Style::Heading, "Instructions"));
    all.push(Text::plain(skill.instructions().trim_end().trim_start_matches(['\r', '\n'])));
    lines(all)
}

fn counted(number: impl TryInto<u64>, unit: &str) -> String {
    match number.try_into() {
        Ok(1) => format!("1 {unit}"),
        Ok(number) => format!("{number} {unit}s"),
        Err(_) => format!("many {unit}s"),
    }
}

/// Returns the name of a skill, as its entry has it.
fn name(entry: &Skill) -> String {
    field(entry, "name")
}

fn field(entry: &Skill, field: &str) -> String {
    entry.frontmatter.get(field).and_then(|value: &Json| value.decode().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use duplexer::types::json::JsonObject;

    use super::*;

    #[test]
    fn a_list_of_skills_names_uris_and_purposes() {
        let fields = JsonObject::new().with("name", "pdf").with("description", "Reads forms, and more.");
        let entry = Skill::new("skill://pdf/SKILL.md", fields, SkillResources::Dynamic);
        let shown = skills(&[entry], Some(30));
        assert_eq!(
            shown.as_str(),
            "Skills\n  pdf  skill://pdf/SKILL.md (files on demand)\n      Reads forms, and more."
        );
        assert_eq!(skills(&[], None).as_str(), "Skills\n  none");
    }
}
