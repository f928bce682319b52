//! The macros `model!`, `kinds!` and `open_enum!`, which declare the messages of the protocol.
//!
//! A model lists its members once, with protocol name and window of revisions. The macro derives the struct, its
//! constructor (required members), its setters (optional members), decoding, and encoding for any revision.

/// Declares an object of the protocol. Doc comments and `doc(alias)` attributes pass through.
///
/// ```text
/// model! {
///     /// A tool.
///     pub struct ToolDefinition {
///         /// Unique name.
///         name: String = "name",
///     } optional {
///         /// Display name.
///         title: String = "title" since V2025_06_18,
///         /// Removed after 2025-11-25.
///         execution: Json = "execution" since V2025_11_25 until V2025_11_25,
///     }
/// }
/// ```
///
/// Members of the first block are arguments of `new`; those of the second are `Option`s with a setter of the same
/// name. `until` is the last revision with the member.
///
/// - `pub result` adds `_meta` (`meta until` where it was removed), `pub cacheable result` also the freshness
///   members of the envelope era; `impl { .. }` overrides methods of `ResultBody`.
/// - `as number` makes the argument of `new` exactly that type, so that a plain integer literal is one.
/// - `const "type" = "text"` writes a constant member, which decoding ignores.
/// - `if f` writes an optional member only where `f(&value, shape)`; `through F` writes `F(&value, shape)`
///   in place of the value; `unless f` fails to write the object where `f(&object, shape)` returns a reason.
macro_rules! model {
    ($(#[$doc:meta])* pub struct $name:ident $($rest:tt)*) => {
        model!(@read plain [$(#[$doc])*] $name $($rest)*);
    };
    ($(#[$doc:meta])* pub result $name:ident $($rest:tt)*) => {
        model!(@read result [$(#[$doc])*] $name $($rest)*);
    };
    ($(#[$doc:meta])* pub cacheable result $name:ident $($rest:tt)*) => {
        model!(@read cacheable [$(#[$doc])*] $name $($rest)*);
    };

    (@read $kind:ident [$($doc:tt)*] $name:ident
        $(const $tag:literal = $value:literal $(since $tsince:ident)?)?
        $(meta until $muntil:ident)?
        {
            $($(#[$rattr:meta])* $r:ident: $rty:ty = $rwire:literal
                $(since $rsince:ident)? $(until $runtil:ident)? $(through $rthrough:path)? $(as $ras:ident)?,)*
        } $(optional {
            $($(#[$oattr:meta])* $o:ident: $oty:ty = $owire:literal
                $(since $osince:ident)? $(until $ountil:ident)? $(if $okeep:path)?,)*
        })?
        $(unless $refusal:ident)?
        $(impl { $($body:item)* })?
    ) => {
        model!(@define [$($doc)*] $name
            { $($(#[$rattr])* $r: $rty = $rwire $(as $ras)?,)* }
            { $($($(#[$oattr])* $o: $oty = $owire,)*)? }
            $kind);

        impl $crate::wire::WireObject for $name {
            #[allow(unused_variables, reason = "a model may have no members")]
            fn members<M: serde::ser::SerializeMap>(
                &self,
                shape: $crate::wire::Shape,
                map: &mut M,
            ) -> Result<(), M::Error> {
                $(
                    if let Some(reason) = $refusal(self, shape) {
                        return Err(serde::ser::Error::custom(reason));
                    }
                )?
                $(
                    if shape.has(model!(@window [$($tsince)?] [])) {
                        map.serialize_entry($tag, $value)?;
                    }
                )?
                $(
                    if shape.has(model!(@window [$($rsince)?] [$($runtil)?])) {
                        map.serialize_entry($rwire, &model!(@shaped [$($rthrough)?])(&self.$r, shape))?;
                    }
                )*
                $($(
                    if let Some(value) = &self.$o
                        && shape.has(model!(@window [$($osince)?] [$($ountil)?]))
                        $(&& $okeep(value, shape))?
                    {
                        map.serialize_entry($owire, &$crate::wire::ForRevision(value, shape))?;
                    }
                )*)?
                Ok(())
            }
        }

        model!(@$kind $name [$($muntil)?] { $($($body)*)? });
    };

    (@define [$($doc:tt)*] $name:ident { $($required:tt)* } { $($optional:tt)* } plain) => {
        model!(@define [$($doc)*] $name { $($required)* } { $($optional)* } {});
    };
    (@define [$($doc:tt)*] $name:ident { $($required:tt)* } { $($optional:tt)* } result) => {
        model!(@define [$($doc)*] $name { $($required)* } { $($optional)* } {
            /// Additional metadata.
            meta: $crate::json::JsonObject = "_meta",
        });
    };
    (@define [$($doc:tt)*] $name:ident { $($required:tt)* } { $($optional:tt)* } cacheable) => {
        model!(@define [$($doc)*] $name { $($required)* } { $($optional)* } {
            /// Time for which the result is fresh, in milliseconds (envelope era).
            #[serde(deserialize_with = "crate::wire::envelope::ttl")]
            ttl_ms: u64 = "ttlMs",
            /// Callers that a cache can serve the result to (envelope era).
            #[serde(deserialize_with = "crate::wire::envelope::scope")]
            cache_scope: $crate::wire::CacheScope = "cacheScope",
            /// Additional metadata.
            meta: $crate::json::JsonObject = "_meta",
        });
    };
    (@define [$($doc:tt)*] $name:ident
        { $($(#[$rattr:meta])* $r:ident: $rty:ty = $rwire:literal $(as $ras:ident)?,)* }
        { $($(#[$oattr:meta])* $o:ident: $oty:ty = $owire:literal,)* }
        { $($(#[$xattr:meta])* $x:ident: $xty:ty = $xwire:literal,)* }
    ) => {
        $($doc)*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[serde(remote = "Self")]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$rattr])* #[serde(rename = $rwire)] pub $r: $rty,)*
            $($(#[$oattr])* #[serde(rename = $owire, default)] pub $o: Option<$oty>,)*
            $($(#[$xattr])* #[serde(rename = $xwire, default)] pub $x: Option<$xty>,)*
        }

        // The derived implementation also accepts arrays. With `remote` it stays private and gets objects only.
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize($crate::json::ObjectsOnly(deserializer))
            }
        }

        impl $name {
            #[doc = concat!("Creates a `", stringify!($name), "` from its required members.")]
            #[allow(clippy::new_without_default, clippy::missing_const_for_fn, reason = "one macro for all models")]
            pub fn new($($r: model!(@argument $rty $(, $ras)?)),*) -> Self {
                Self { $($r: $r.into(),)* $($o: None,)* $($x: None,)* }
            }

            $(
                #[doc = concat!("Sets `", $owire, "`.")]
                #[must_use]
                pub fn $o(mut self, $o: impl Into<$oty>) -> Self {
                    self.$o = Some($o.into());
                    self
                }
            )*
            $(
                #[doc = concat!("Sets `", $xwire, "`.")]
                #[must_use]
                pub fn $x(mut self, $x: impl Into<$xty>) -> Self {
                    self.$x = Some($x.into());
                    self
                }
            )*
        }

        /// Writes all members, whatever revision defines them.
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::wire::Wire::write(self, $crate::wire::Shape::FULL, serializer)
            }
        }
    };

    (@argument $type:ty) => { impl Into<$type> };
    (@argument $type:ty, number) => { $type };

    (@plain $name:ident [] {}) => {
        impl $crate::wire::Wire for $name {
            fn write<S: serde::Serializer>(
                &self,
                shape: $crate::wire::Shape,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                $crate::wire::object(self, shape, serializer)
            }
        }
    };
    (@result $name:ident [$($muntil:ident)?] { $($body:item)* }) => {
        impl $crate::wire::Wire for $name {
            fn write<S: serde::Serializer>(
                &self,
                shape: $crate::wire::Shape,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                let meta = self.meta.as_ref().filter(|_| shape.has(model!(@window [] [$($muntil)?])));
                $crate::wire::envelope::plain_result(self, meta, shape, serializer)
            }
        }

        impl $crate::wire::ResultBody for $name {
            fn meta(&self) -> Option<&$crate::json::JsonObject> {
                self.meta.as_ref()
            }
            $($body)*
        }
    };
    (@cacheable $name:ident [] {}) => {
        model!(@result $name [] {
            fn freshness(&self) -> $crate::wire::Freshness {
                $crate::wire::Freshness { ttl_ms: self.ttl_ms, scope: self.cache_scope }
            }
        });
    };

    (@shaped []) => { $crate::wire::ForRevision };
    (@shaped [$through:path]) => { $through };

    (@window [] []) => { $crate::version::Window::ALWAYS };
    (@window [$since:ident] []) => {
        $crate::version::Window::since($crate::version::ProtocolVersion::$since)
    };
    (@window [] [$until:ident]) => {
        $crate::version::Window::until($crate::version::ProtocolVersion::$until)
    };
    (@window [$since:ident] [$until:ident]) => {
        $crate::version::Window::between(
            $crate::version::ProtocolVersion::$since,
            $crate::version::ProtocolVersion::$until,
        )
    };
}
pub(crate) use model;

/// Implements `Deserialize` for a type with a function `read` from [`Json`](crate::json::Json), or from an object where
/// `object` is given. The function is not generic, so it is compiled once, not once in every crate that decodes the type.
macro_rules! read_from_json {
    ($name:ident) => {
        $crate::model::read_from_json!(@with $name, <$crate::json::Json as serde::Deserialize>::deserialize);
    };
    (object $name:ident) => {
        $crate::model::read_from_json!(@with $name, $crate::json::Json::object_of);
    };
    (@with $name:ident, $json:expr) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::read(&$json(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use read_from_json;

/// Declares objects that one member distinguishes. An unknown kind is kept verbatim.
///
/// The caller implements `Wire`, because older revisions write some kinds differently: [`kinds!`] provides
/// `write_kind`, which writes each kind in its own form.
macro_rules! kinds {
    (
        $(#[$doc:meta])*
        pub enum $name:ident by $tag:literal { $($(#[$vdoc:meta])* $variant:ident($type:ty) = $text:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* $variant($type),)*
            /// A kind that this library does not know.
            #[cfg_attr(test, arbitrary(skip))]
            Other($crate::json::Json),
        }

        impl $name {
            pub(crate) fn write_kind<S: serde::Serializer>(
                &self,
                shape: $crate::wire::Shape,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(value) => $crate::wire::Wire::write(value, shape, serializer),)*
                    Self::Other(json) => serde::Serialize::serialize(json, serializer),
                }
            }
        }

        $(
            impl From<$type> for $name {
                fn from(value: $type) -> Self {
                    Self::$variant(value)
                }
            }
        )*

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.write_kind($crate::wire::Shape::FULL, serializer)
            }
        }

        impl $name {
            fn read(json: &$crate::json::Json) -> Result<Self, serde_json::Error> {
                let [kind] = $crate::json::find_members(json.as_str(), [$tag])?;
                match kind.one().and_then($crate::json::scan::string).as_deref() {
                    $(Some($text) => json.decode().map(Self::$variant),)*
                    _ => Ok(Self::Other(json.clone())),
                }
            }
        }

        $crate::model::read_from_json!(object $name);
    };
}
pub(crate) use kinds;

/// Declares an open set of strings. An unknown value is kept verbatim.
macro_rules! open_enum {
    (
        $(#[$doc:meta])*
        pub enum $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
            /// A value that this library does not know.
            #[cfg_attr(test, arbitrary(skip))]
            Other(Box<str>),
        }

        impl $name {
            /// Returns the protocol's text of the value.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.into()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Ok(Self::from(&*text))
            }
        }

        $crate::wire::same_everywhere!($name);
    };
}
pub(crate) use open_enum;
