//! Gives a value the shape of its revision while it is written: one pass, nothing in between.
//!
//! The public types are free of versions. Which member exists in which revision is data in the models
//! (`model!`); what a revision says differently is in `wire/handshake.rs`; what the envelope era adds to
//! every result is in `wire/envelope.rs`.

pub(crate) mod custom;
pub(crate) mod envelope;
mod error;
pub(crate) mod handshake;
mod input;

use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};

use crate::error::ErrorObject;
use crate::json::writer::Writer;
use crate::json::{Json, JsonObject};
use crate::version::{ProtocolVersion, Window};

pub use custom::write_custom_result;
pub use envelope::{ResultMeta, result_type_of, write_result};
pub use error::error_in;

/// The revision a value is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(Option<ProtocolVersion>);

impl Shape {
    /// Everything the value holds, whatever revision knows it.
    pub const FULL: Self = Self(None);

    /// What `version` knows.
    pub const fn new(version: ProtocolVersion) -> Self {
        Self(Some(version))
    }

    /// Whether what exists in `window` is written.
    pub const fn has(self, window: Window) -> bool {
        match self.0 {
            Some(version) => window.contains(version),
            None => true,
        }
    }
}

/// A value that can be written in the shape of a revision.
pub trait Wire {
    /// Writes the value as `shape` has it.
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error>;
}

/// A value whose JSON is an object: its members can be written into a larger one.
pub trait WireObject: Wire {
    /// Writes the members, without `_meta` where the type is a result.
    fn members<M: SerializeMap>(&self, shape: Shape, map: &mut M) -> Result<(), M::Error>;
}

/// Writes an object that consists of its members alone.
pub(crate) fn object<T: WireObject + ?Sized, S: Serializer>(
    value: &T,
    shape: Shape,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    value.members(shape, &mut map)?;
    map.end()
}

/// Writes the params of a request or a notification as `version` has them, with their `_meta` at the end.
///
/// On failure `out` may hold a part of them: cut it back.
pub fn write_params<P: WireObject + ?Sized>(
    out: &mut Vec<u8>,
    params: &P,
    version: ProtocolVersion,
    meta: Option<&JsonObject>,
) -> Result<(), serde_json::Error> {
    let mut map = Writer::new(out).serialize_map(None)?;
    params.members(Shape::new(version), &mut map)?;
    envelope::plain_meta(&mut map, meta)?;
    map.end()
}

/// What a request is answered with.
pub trait ResultBody: WireObject + Send + Sync + 'static {
    /// The result's own `_meta`.
    fn meta(&self) -> Option<&JsonObject>;

    /// What the handler said about how long the result stays fresh.
    fn freshness(&self) -> Freshness {
        Freshness::default()
    }

    /// The `resultType` of the envelope era.
    fn result_type(&self) -> &str {
        result_type::COMPLETE
    }

    /// Whether the result is a tool's failure, told in-band.
    fn is_error(&self) -> bool {
        false
    }
}

/// The values of `resultType` that the protocol defines.
pub mod result_type {
    /// A final result.
    pub const COMPLETE: &str = "complete";
    /// The server asks for input before it can go on.
    pub const INPUT_REQUIRED: &str = "input_required";
    /// The call has become a task (tasks extension).
    pub const TASK: &str = "task";
}

/// How long a result may be kept and for whom; unset members take the server's hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// Milliseconds for which the result is fresh.
    pub ttl_ms: Option<u64>,
    /// Who may be served the copy.
    pub scope: Option<CacheScope>,
}

/// Who may be served a cached copy of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub enum CacheScope {
    /// Anybody.
    Public,
    /// Only the caller who asked.
    Private,
}

/// A borrowed value together with the shape to write it in.
#[derive(Clone, Copy, Debug)]
pub struct ForRevision<'a, T: ?Sized>(pub &'a T, pub Shape);

impl<T: Wire + ?Sized> Serialize for ForRevision<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(self.1, serializer)
    }
}

/// Types whose JSON is the same in every revision.
macro_rules! same_everywhere {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::wire::Wire for $type {
            fn write<S: serde::Serializer>(
                &self,
                _: $crate::wire::Shape,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(self, serializer)
            }
        }
    )*};
}
pub(crate) use same_everywhere;

same_everywhere!(String, str, bool, u32, u64, i64, Json, CacheScope, ErrorObject);

/// Whole numbers are written without a fraction. What is not a number has no JSON, so it is refused.
impl Wire for f64 {
    fn write<S: Serializer>(&self, _: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if !self.is_finite() {
            return Err(S::Error::custom("neither NaN nor infinity can be written as JSON"));
        }
        if self.fract() == 0.0 && self.abs() < EXACT {
            #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53 fits")]
            return serializer.serialize_i64(*self as i64);
        }
        serializer.serialize_f64(*self)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|item| ForRevision(item, shape)))
    }
}

impl<T: Wire + ?Sized> Wire for Box<T> {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).write(shape, serializer)
    }
}

impl<T: Wire> Wire for JsonObject<T> {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, value)| (name, ForRevision(value, shape))))
    }
}

/// A `null` that has a meaning of its own.
impl<T: Wire> Wire for Option<T> {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => value.write(shape, serializer),
            None => serializer.serialize_none(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
