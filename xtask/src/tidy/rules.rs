//! The rules, one row each: a name, a remedy, and the function that finds violations.
//!
//! `ARCHITECTURE.md` gives the reasons of the design; a remedy describes the change. A new rule is a new row and a new
//! pair of samples in `rules/tests.rs`, which fails for a rule without samples.

mod dependencies;
mod edges;
mod examples;
mod layout;
mod literals;
mod naming;
mod packages;
mod phrases;

use super::Finding;
use super::tree::Tree;

/// One rule of the tree.
pub(super) struct Rule {
    pub(super) name: &'static str,
    /// How to fix a finding.
    pub(super) remedy: &'static str,
    pub(super) check: fn(&Tree) -> Vec<Finding>,
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "module-edge",
        remedy: "imports follow the layers of ARCHITECTURE.md: move the item down, or pass it in from above",
        check: edges::modules,
    },
    Rule {
        name: "crate-edge",
        remedy: "crates split where dependencies split: put the code that needs this into the crate that has it",
        check: edges::manifests,
    },
    Rule {
        name: "http-sees-no-registry",
        remedy: "duplexer-http talks to the drivers only: ask through `RunningServer`, not through the registry",
        check: edges::http_registry,
    },
    Rule {
        name: "kernel-is-blind",
        remedy: "the kernel reads the method table and knows no method and no HTTP type by name",
        check: edges::kernel,
    },
    Rule {
        name: "stray-method",
        remedy: "method names live in methods.rs: use the marker type's METHOD or `Method::name`",
        check: literals::methods,
    },
    Rule {
        name: "stray-version",
        remedy: "ask a feature window of version.rs instead of naming a revision",
        check: literals::versions,
    },
    Rule {
        name: "machine-path",
        remedy: "take the path from the caller or the environment: this one exists on one machine",
        check: literals::machine_paths,
    },
    Rule {
        name: "stands-alone",
        remedy: "copy what is needed into the repository and say it in our own words",
        check: literals::outside_folder,
    },
    Rule {
        name: "file-size",
        remedy: "split the file: `foo.rs` keeps the public types and the story, `foo/` takes the parts",
        check: layout::size,
    },
    Rule { name: "no-mod-rs", remedy: "name it `foo.rs` next to `foo/`", check: layout::mod_rs },
    Rule {
        name: "module-header",
        remedy: "begin with `//!`, at most ten lines: what this does and what it does not know",
        check: layout::header,
    },
    Rule {
        name: "todo-has-issue",
        remedy: "write `TODO(#12)` with the number of its issue, or do it now",
        check: naming::todo,
    },
    Rule {
        name: "type-name",
        remedy: "name the type after what it is, in the specification's words",
        check: naming::types,
    },
    Rule {
        name: "one-wire-boundary",
        remedy: "exactly one function turns a failure into a wire error object: call it",
        check: naming::wire_boundary,
    },
    Rule {
        name: "phrase",
        remedy: "name the actor and use the term of the field: cancelled, resumed, in flight, admitted, ignored",
        check: phrases::phrases,
    },
    Rule {
        name: "type-example",
        remedy: "show the type in a short example that runs, in its documentation: users meet it first",
        check: examples::examples,
    },
    Rule {
        name: "dependency-licence",
        remedy: "use another crate, or allow the licence in deny.toml after reading it",
        check: dependencies::licences,
    },
    Rule {
        name: "dependency-source",
        remedy: "dependencies come from the crate registry or from this repository",
        check: dependencies::sources,
    },
    Rule {
        name: "dependency-versions",
        remedy: "use one version of a crate, or list the older one under `skip` in deny.toml with the reason",
        check: dependencies::duplicates,
    },
    Rule {
        name: "package",
        remedy: "a published crate has a readme, links to both licence texts, and settings for docs.rs, as its neighbours do",
        check: packages::packages,
    },
];

#[cfg(test)]
mod tests;
