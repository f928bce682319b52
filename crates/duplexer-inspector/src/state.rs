//! What the parts of an inspector share.

use std::sync::Mutex;

use serde_json::Value;

use crate::calls::Calls;
use crate::clock::Clock;
use crate::events::Events;
use crate::inspector::Settings;
use crate::questions::Questions;
use crate::sessions::Sessions;
use crate::views::Views;
use crate::wire::Wire;

pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) page: Shown,
    pub(crate) sessions: Sessions,
    pub(crate) calls: Calls,
    pub(crate) views: Views,
}

/// What the page is shown, which outlives the sessions.
pub(crate) struct Shown {
    pub(crate) clock: Clock,
    pub(crate) events: Events,
    pub(crate) wire: Wire,
    pub(crate) questions: Questions,
    /// URIs of the folders that the server gets (roots).
    pub(crate) roots: Mutex<Vec<String>>,
}

impl State {
    pub(crate) fn new(settings: Settings) -> Self {
        let page = Shown {
            clock: Clock::start(),
            events: Events::default(),
            wire: Wire::default(),
            questions: Questions::default(),
            roots: Mutex::default(),
        };
        let (sessions, calls, views) = (Sessions::default(), Calls::default(), Views::default());
        Self { settings, page, sessions, calls, views }
    }

    /// Tells the page of something.
    pub(crate) fn tell(&self, event: &Value) {
        self.page.events.add(event);
    }
}
