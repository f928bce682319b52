//! Annotations: hints for the client about an item.

use crate::model::{model, open_enum};

model! {
    /// [Annotations](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#annotations) of a resource or of content: hints about its use and display.
    ///
    /// ```
    /// use duplexer_types::annotations::{Annotations, Role};
    /// use duplexer_types::content::TextContent;
    ///
    /// let for_the_user = Annotations::new().audience([Role::User]).priority(1.0);
    /// let text = TextContent::new("Saved.").annotations(for_the_user);
    /// assert_eq!(text.annotations.unwrap().priority, Some(1.0));
    /// ```
    pub struct Annotations {} optional {
        /// Intended audience.
        audience: Vec<Role> = "audience",
        /// Importance, from 0 (optional) to 1 (effectively required).
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::fraction))]
        priority: f64 = "priority",
        /// Time of the last modification, in ISO 8601.
        last_modified: String = "lastModified" since V2025_06_18,
    }
}

open_enum! {
    /// Speaker or audience of a message.
    ///
    /// ```
    /// use duplexer_types::annotations::Role;
    /// use duplexer_types::prompt::PromptMessage;
    ///
    /// assert_eq!(PromptMessage::user("Hi").role, Role::User);
    /// ```
    pub enum Role {
        /// The user.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}
