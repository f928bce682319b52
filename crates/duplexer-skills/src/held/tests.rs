//! Entries of peers, and what is read of their skills.

use duplexer_types::json::JsonObject;

use super::*;

const MANIFEST_TEXT: &str = "---\nname: pdf\ndescription: Forms\n---\nBody.\n";

fn file(uri: &str, bytes: &[u8]) -> SkillResource {
    SkillResource::new(uri, digest::of(bytes), bytes.len() as u64)
}

fn entry(resources: impl Into<SkillResources>) -> Skill {
    let fields = JsonObject::new().with("name", "pdf").with("description", "Forms");
    Skill::new("skill://acme/pdf/SKILL.md", fields, resources)
}

fn manifest() -> SkillResource {
    file("skill://acme/pdf/SKILL.md", MANIFEST_TEXT.as_bytes())
}

fn held() -> HeldSkill {
    let files = vec![manifest(), file("skill://acme/pdf/references/a%20b.md", b"forms")];
    HeldSkill::new(entry(files)).unwrap()
}

/// SKL-12.
#[test]
fn a_file_is_verified_by_size_and_digest() {
    let held = held();
    let uri = held.uri_of("references/a b.md").unwrap();
    assert_eq!(uri, "skill://acme/pdf/references/a%20b.md");
    assert_eq!(held.verify(&uri, b"forms"), Ok(()));
    let size = VerifyError::Size { uri: uri.clone(), size: 6, listed: 5 };
    assert_eq!(held.verify(&uri, b"forms!"), Err(size));
    assert_eq!(held.verify(&uri, b"fOrms"), Err(VerifyError::Digest(uri)));
    let other = "skill://acme/pdf/other.md";
    assert_eq!(held.verify(other, b""), Err(VerifyError::NotListed(other.to_owned())));
}

/// SKL-12: the front matter of a manifest is compared too, even if its digest fits.
#[test]
fn a_manifest_is_verified_field_by_field() {
    assert_eq!(held().verify_manifest(MANIFEST_TEXT).unwrap().name(), "pdf");
    let other = MANIFEST_TEXT.replace("Forms", "Fraud");
    assert!(matches!(held().verify_manifest(&other), Err(VerifyError::Digest(_))));
    let fitting = HeldSkill::new(entry(vec![file("skill://acme/pdf/SKILL.md", other.as_bytes())])).unwrap();
    let error = fitting.verify_manifest(&other).unwrap_err();
    assert!(matches!(&error, VerifyError::FrontMatter { field, .. } if field == "description"), "{error}");
    let broken = "no front matter";
    let fitting = HeldSkill::new(entry(vec![file("skill://acme/pdf/SKILL.md", broken.as_bytes())])).unwrap();
    assert!(matches!(fitting.verify_manifest(broken), Err(VerifyError::InvalidFrontMatter { .. })));
}

/// SKL-06: nothing of a dynamic skill is known in advance except its front matter.
#[test]
fn a_dynamic_skill_has_only_its_front_matter() {
    let held = HeldSkill::new(entry(SkillResources::Dynamic)).unwrap();
    assert!(held.files().is_none() && held.fingerprint().is_none());
    assert!(held.verify_manifest(MANIFEST_TEXT).is_ok());
    assert!(held.verify_manifest(&MANIFEST_TEXT.replace("Forms", "Fraud")).is_err());
    assert_eq!(held.uri_of("a b/c.md").unwrap(), "skill://acme/pdf/a%20b/c.md");
    for outside in ["../x", "a/../../x", "/etc/passwd", "", "a//b", "a\\b", "."] {
        assert!(held.uri_of(outside).is_err(), "{outside}");
    }
}

/// SKL-D5: relative paths cannot leave the skill.
#[test]
fn only_listed_paths_have_a_uri() {
    for path in
        ["references/other.md", "../pdf/SKILL.md", "./SKILL.md", "references", "", "/SKILL.md", "SKILL.md/"]
    {
        assert_eq!(held().uri_of(path), Err(VerifyError::NotListed(path.to_owned())));
    }
}

/// SKL-13: an approval ends when a file changes, appears or goes.
#[test]
fn the_fingerprint_changes_with_every_file() {
    let of = |files: Vec<SkillResource>| HeldSkill::new(entry(files)).unwrap().fingerprint().unwrap();
    let forms = || file("skill://acme/pdf/forms.md", b"forms");
    let fingerprint = of(vec![manifest(), forms()]);
    assert_eq!(of(vec![forms(), manifest()]), fingerprint);
    assert_ne!(of(vec![manifest()]), fingerprint);
    assert_ne!(of(vec![manifest(), file("skill://acme/pdf/forms.md", b"other")]), fingerprint);
    assert_ne!(of(vec![manifest(), file("skill://acme/pdf/form.md", b"forms")]), fingerprint);
}

/// EXF-06: what a server sends is checked like everything else.
#[test]
fn an_invalid_entry_is_refused() {
    let check = |entry: Skill, expected: &str| {
        let error = HeldSkill::new(entry).expect_err(expected).to_string();
        assert!(error.ends_with(expected), "{error}");
    };
    let with = |change: fn(&mut Skill)| {
        let mut entry = entry(vec![manifest()]);
        change(&mut entry);
        entry
    };
    check(
        with(|it| it.uri = "skill://acme/other/SKILL.md".to_owned()),
        "its URI does not end with /pdf/SKILL.md",
    );
    check(with(|it| it.uri = "skill://acme/pdf/skill.md".to_owned()), "its URI does not end with /SKILL.md");
    check(with(|it| it.uri = "/pdf/SKILL.md".to_owned()), "its URI does not end with /pdf/SKILL.md");
    check(with(|it| drop(it.frontmatter.remove("name"))), "it has no name");
    check(with(|it| drop(it.frontmatter.remove("description"))), "it has no description");
    check(
        with(|it| drop(it.frontmatter.insert("name", Json::from("../x")))),
        "a name consists of `a` to `z`, digits and `-`",
    );
    check(entry(vec![]), "it does not list its SKILL.md");
    check(entry(vec![manifest(), manifest()]), "it lists skill://acme/pdf/SKILL.md twice");
    let twin = file("skill://acme/pdf/%53KILL.md", b"");
    check(entry(vec![manifest(), twin]), "it lists skill://acme/pdf/%53KILL.md twice");
    for outside in
        ["skill://acme/other.md", "skill://acme/pdf/../other.md", "skill://acme/pdf/%2e%2e/other.md"]
    {
        check(entry(vec![manifest(), file(outside, b"")]), "is not a file inside of it");
    }
    let digest = SkillResource::new("skill://acme/pdf/a.md", "md5:0", 0);
    check(entry(vec![manifest(), digest]), "is not one of SHA-256");
    let many = (0..600).map(|number| file(&format!("skill://acme/pdf/{number}.md"), b"")).collect::<Vec<_>>();
    check(entry(many), "it lists more than 512 files");
    let large = SkillResource::new("skill://acme/pdf/a.md", digest::of(b""), u64::MAX);
    check(entry(vec![manifest(), large]), "are larger than 16777216 bytes together");
}
