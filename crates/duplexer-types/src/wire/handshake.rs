//! How older revisions say what they cannot say.
