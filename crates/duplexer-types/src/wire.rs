//! Writes values in the shape of a revision, in one pass.
//!
//! The public types are independent of revisions. The models (`model!`) define which member exists in which revision,
//! `wire/handshake.rs` has the older forms of values, `wire/envelope.rs` adds the members that the envelope era
//! requires in every result.

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

/// The revision that a value is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(Option<ProtocolVersion>);

impl Shape {
    /// All members, whatever revision defines them.
    pub const FULL: Self = Self(None);

    /// The members of `version`.
    pub const fn new(version: ProtocolVersion) -> Self {
        Self(Some(version))
    }

    /// Whether members with this window are written.
    pub const fn has(self, window: Window) -> bool {
        match self.0 {
            Some(version) => window.contains(version),
            None => true,
        }
    }
}

/// Value that can be written in the shape of a revision.
pub trait Wire {
    /// Writes the value in this shape.
    ///
    /// # Errors
    ///
    /// Fails if the serializer does.
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error>;
}

/// Value whose JSON is an object. Its members can be written into another object.
pub trait WireObject: Wire {
    /// Writes the members; for a result without `_meta`.
    ///
    /// # Errors
    ///
    /// Fails if the serializer does.
    fn members<M: SerializeMap>(&self, shape: Shape, map: &mut M) -> Result<(), M::Error>;
}

/// Writes an object from its members.
pub(crate) fn object<T: WireObject + ?Sized, S: Serializer>(
    value: &T,
    shape: Shape,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    value.members(shape, &mut map)?;
    map.end()
}

/// Writes the params of a request or notification in the shape of `version`, followed by `_meta`.
///
/// # Errors
/// Fails if the params cannot be written in this revision. `out` may then hold a part of them, which the caller
/// truncates.
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

/// Result of a request.
pub trait ResultBody: WireObject + Send + Sync + 'static {
    /// Returns the `_meta` of the result.
    fn meta(&self) -> Option<&JsonObject>;

    /// Returns the freshness that the handler has set.
    fn freshness(&self) -> Freshness {
        Freshness::default()
    }

    /// Returns the `resultType` of the envelope era.
    fn result_type(&self) -> &str {
        result_type::COMPLETE
    }

    /// Whether the result is a tool execution error (`isError: true`).
    fn is_error(&self) -> bool {
        false
    }
}

/// Values of `resultType`.
pub mod result_type {
    /// A final result.
    pub const COMPLETE: &str = "complete";
    /// The server requests input before it can complete the request.
    pub const INPUT_REQUIRED: &str = "input_required";
    /// The request became a task (tasks extension).
    pub const TASK: &str = "task";
}

/// [Freshness](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching) of a result. The hint of the server replaces unset members.
///
/// ```
/// use duplexer_types::wire::{CacheScope, Freshness};
///
/// let for_an_hour = Freshness { ttl_ms: Some(3_600_000), scope: Some(CacheScope::Public) };
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// Time for which the result is fresh, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// Callers that a cache can serve the result to.
    pub scope: Option<CacheScope>,
}

/// Callers that a [cache](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching) can serve a result to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub enum CacheScope {
    /// All callers.
    Public,
    /// Only the caller of the request.
    Private,
}

/// Borrowed value that serializes in the shape of a revision.
///
/// ```
/// use duplexer_types::version::ProtocolVersion;
/// use duplexer_types::wire::{ForRevision, Shape};
/// use duplexer_types::tool::CallToolResult;
/// use serde_json::json;
///
/// let result = CallToolResult::structured(json!({"sum": 3}));
/// let oldest = Shape::new(ProtocolVersion::V2024_11_05);
/// let text = serde_json::to_string(&ForRevision(&result, oldest))?;
/// assert!(!text.contains("structuredContent"), "the revision does not have it");
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ForRevision<'a, T: ?Sized>(pub &'a T, pub Shape);

impl<T: Wire + ?Sized> Serialize for ForRevision<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(self.1, serializer)
    }
}

/// Implements [`Wire`] for types whose JSON is the same in every revision.
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

/// Whole numbers are written without a fraction. NaN and infinity have no JSON form, so they are an error.
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

/// For members whose `null` has a meaning.
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
