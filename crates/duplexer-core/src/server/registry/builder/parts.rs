//! Room for layers above the kernel: what they collect, and where they find the state.

use std::any::Any;

use super::ServerBuilder;
use crate::server::registry::{Part, StateSlot};

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// Where the state of handlers registered from here on is found, for parts that keep handlers of their own.
    pub fn state_slot(&self) -> StateSlot<S> {
        StateSlot::new(self.slot())
    }

    /// The part of type `P`, which is there from the first time somebody asks for it.
    pub fn part<P: Part + Default>(&mut self) -> &mut P {
        let parts = &mut self.rest.parts;
        let at = parts.iter().position(|part| (&**part as &dyn Any).is::<P>()).unwrap_or_else(|| {
            parts.push(Box::new(P::default()));
            parts.len() - 1
        });
        let part: &mut dyn Any = &mut *parts[at];
        match part.downcast_mut() {
            Some(part) => part,
            None => unreachable!("looked for by this very type"),
        }
    }
}
