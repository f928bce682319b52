//! Compares the citations of the workspace's tests with the manifest, in both directions.
//!
//! `cargo xtask requirements` prints the same evidence as a table.

#[path = "../../xtask/src/requirements/evidence.rs"]
mod evidence;

use std::path::Path;

use evidence::{Evidence, Ids, Reason, citations, is_id, tests_of};

#[test]
fn every_requirement_is_shown_and_every_citation_is_a_requirement() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let faults = Evidence::gather(root).unwrap().faults();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn only_tests_count_and_only_known_areas_are_ids() {
    let areas = Ids::from(["RUN".to_owned(), "P-RPC".to_owned()]);
    // The ids do not begin a line, so that the scan of this file finds no citations in it.
    let text = "/// RUN-91\nfn b() {}\n\n#[cfg(test)]\nmod tests {\n// RUN-90, UTF-16, P-RPC-90.\nlet RUN-92";
    let cited = |file: &str| -> Vec<_> {
        let found = citations(tests_of(Path::new(file), text), &areas);
        found.into_iter().map(|(id, test)| format!("{id} {test}").trim().to_owned()).collect()
    };
    assert_eq!(cited("src/a.rs"), ["P-RPC-90", "RUN-90"]);
    assert_eq!(cited("src/a/tests.rs"), ["RUN-91 b", "P-RPC-90 b", "RUN-90 b"]);
    assert_eq!(cited("src/tests/a.rs").len(), 3);
    assert!(is_id("D-3") && is_id("F-12") && !is_id("D-") && !is_id("F-123") && !is_id("E-3"));
    assert!(is_id("R-S30") && is_id("R-H120") && !is_id("R-S3") && !is_id("R-X30"));
    assert!(
        is_id("RUN-01")
            && is_id("TSK-D5")
            && is_id("P-RPC-5")
            && !is_id("RUN-1")
            && !is_id("P-5")
            && !is_id("SHA-256")
    );
}

#[test]
fn a_reason_is_of_a_known_kind_and_says_why() {
    for known in ["later", "issue 7", "client", "host", "author", "absent no client uses it"] {
        assert!(Reason::parse(known).is_some(), "{known}");
    }
    for unknown in ["", "soon", "issue", "issue x", "client side", "absent", "absent why"] {
        assert!(Reason::parse(unknown).is_none(), "{unknown}");
    }
}
