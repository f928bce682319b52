//! Pages of servers (MCP Apps) that are shown at the moment: the last few, each under a name that cannot be guessed.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use duplexer_core::dispatch::lock;
use serde::Deserialize;

use crate::policy::{self, Declared, Policy};
use crate::random;

/// Maximum number of views, and of reports about each.
const MAX_VIEWS: usize = 32;
const MAX_REPORTS: usize = 200;

/// What the page sends about a view.
#[derive(Debug, Deserialize)]
pub(crate) struct NewView {
    html: String,
    #[serde(default)]
    csp: Declared,
}

#[derive(Debug)]
struct View {
    name: String,
    html: Bytes,
    policy: String,
    reports: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<VecDeque<View>>);

impl Views {
    /// Adds a view and returns its name and policy. The oldest one gives way.
    pub(crate) fn add(&self, view: NewView) -> Result<(String, Policy), getrandom::Error> {
        let name = random::name()?;
        let policy = policy::of_view(&view.csp, &format!("/report/{name}"));
        let mut views = lock(&self.0);
        if views.len() == MAX_VIEWS {
            views.pop_front();
        }
        views.push_back(View {
            name: name.clone(),
            html: view.html.into(),
            policy: policy.text.clone(),
            reports: 0,
        });
        Ok((name, policy))
    }

    /// Returns page and policy of a view.
    pub(crate) fn page(&self, name: &str) -> Option<(Bytes, String)> {
        let views = lock(&self.0);
        views.iter().find(|view| view.name == name).map(|view| (view.html.clone(), view.policy.clone()))
    }

    /// Counts a report about a view. Returns whether it is passed on.
    pub(crate) fn count_report(&self, name: &str) -> bool {
        let mut views = lock(&self.0);
        let Some(view) = views.iter_mut().find(|view| view.name == name) else { return false };
        view.reports += 1;
        view.reports <= MAX_REPORTS
    }
}
