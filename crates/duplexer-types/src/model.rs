//! `model!` and `open_enum!`: how the messages of the protocol are written down.
//!
//! A model lists its members once, with wire name and window of revisions. From that list come the struct,
//! its constructor (what is required) and builder methods (what is optional), reading, and writing in the
//! shape of any revision.

/// Declares an object of the protocol.
///
/// ```text
/// model! {
///     /// A tool.
///     pub struct Tool {
///         /// Unique name.
///         name: String = "name",
///     } optional {
///         /// For people.
///         title: String = "title" since V2025_06_18,
///         /// Gone again.
///         execution: Json = "execution" since V2025_11_25 until V2025_11_25,
///     }
/// }
/// ```
///
/// Members of the first block are arguments of `new`; those of the second are `Option`s with a builder
/// method of the same name. `until` names the last revision that knows the member. `pub result` adds
/// `_meta`, `pub cacheable result` also the freshness members of the envelope era.
macro_rules! model {
    (
        $(#[$doc:meta])*
        pub struct $name:ident {
            $($(#[$rattr:meta])* $r:ident: $rty:ty = $rwire:literal $(since $rsince:ident)? $(until $runtil:ident)?,)*
        } $(optional {
            $($(#[$oattr:meta])* $o:ident: $oty:ty = $owire:literal $(since $osince:ident)? $(until $ountil:ident)?,)*
        })?
    ) => {
        model!(@define [$(#[$doc])*] $name
            { $($(#[$rattr])* $r: $rty = $rwire [$($rsince)?] [$($runtil)?],)* }
            { $($($(#[$oattr])* $o: $oty = $owire [$($osince)?] [$($ountil)?],)*)? }
            {});
        model!(@write $name
            { $($r = $rwire [$($rsince)?] [$($runtil)?],)* }
            { $($($o = $owire [$($osince)?] [$($ountil)?],)*)? });
        model!(@plain $name);
    };
    (
        $(#[$doc:meta])*
        pub result $name:ident {
            $($(#[$rattr:meta])* $r:ident: $rty:ty = $rwire:literal $(since $rsince:ident)? $(until $runtil:ident)?,)*
        } $(optional {
            $($(#[$oattr:meta])* $o:ident: $oty:ty = $owire:literal $(since $osince:ident)? $(until $ountil:ident)?,)*
        })?
        $(impl { $($body:item)* })?
    ) => {
        model!(@define [$(#[$doc])*] $name
            { $($(#[$rattr])* $r: $rty = $rwire [$($rsince)?] [$($runtil)?],)* }
            { $($($(#[$oattr])* $o: $oty = $owire [$($osince)?] [$($ountil)?],)*)? }
            { meta: $crate::json::Members = "_meta" });
        model!(@write $name
            { $($r = $rwire [$($rsince)?] [$($runtil)?],)* }
            { $($($o = $owire [$($osince)?] [$($ountil)?],)*)? });
        model!(@result $name { $($($body)*)? });
    };
    (
        $(#[$doc:meta])*
        pub cacheable result $name:ident {
            $($(#[$rattr:meta])* $r:ident: $rty:ty = $rwire:literal $(since $rsince:ident)? $(until $runtil:ident)?,)*
        } $(optional {
            $($(#[$oattr:meta])* $o:ident: $oty:ty = $owire:literal $(since $osince:ident)? $(until $ountil:ident)?,)*
        })?
    ) => {
        model!(@define [$(#[$doc])*] $name
            { $($(#[$rattr])* $r: $rty = $rwire [$($rsince)?] [$($runtil)?],)* }
            { $($($(#[$oattr])* $o: $oty = $owire [$($osince)?] [$($ountil)?],)*)? }
            { ttl_ms: u64 = "ttlMs", cache_scope: $crate::wire::CacheScope = "cacheScope", meta: $crate::json::Members = "_meta" });
        model!(@write $name
            { $($r = $rwire [$($rsince)?] [$($runtil)?],)* }
            { $($($o = $owire [$($osince)?] [$($ountil)?],)*)? });
        model!(@result $name {
            fn freshness(&self) -> $crate::wire::Freshness {
                $crate::wire::Freshness { ttl_ms: self.ttl_ms, scope: self.cache_scope }
            }
        });
    };

    (@define [$($doc:tt)*] $name:ident
        { $($(#[$rattr:meta])* $r:ident: $rty:ty = $rwire:literal [$($rsince:ident)?] [$($runtil:ident)?],)* }
        { $($(#[$oattr:meta])* $o:ident: $oty:ty = $owire:literal [$($osince:ident)?] [$($ountil:ident)?],)* }
        { $($x:ident: $xty:ty = $xwire:literal),* }
    ) => {
        $($doc)*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$rattr])* #[serde(rename = $rwire)] pub $r: $rty,)*
            $($(#[$oattr])* #[serde(rename = $owire, default)] pub $o: Option<$oty>,)*
            $(#[doc = concat!("`", $xwire, "`.")] #[serde(rename = $xwire, default)] pub $x: Option<$xty>,)*
        }

        impl $name {
            #[doc = concat!("A `", stringify!($name), "` with what it cannot do without.")]
            #[allow(clippy::new_without_default, clippy::missing_const_for_fn, reason = "one macro for all models")]
            pub fn new($($r: impl Into<$rty>),*) -> Self {
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

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::wire::Wire::write(self, $crate::wire::Shape::FULL, serializer)
            }
        }
    };

    (@write $name:ident
        { $($r:ident = $rwire:literal [$($rsince:ident)?] [$($runtil:ident)?],)* }
        { $($o:ident = $owire:literal [$($osince:ident)?] [$($ountil:ident)?],)* }
    ) => {
        impl $crate::wire::WireObject for $name {
            #[allow(unused_variables, reason = "a model may have no members")]
            fn members<M: serde::ser::SerializeMap>(
                &self,
                shape: $crate::wire::Shape,
                map: &mut M,
            ) -> Result<(), M::Error> {
                use $crate::wire::Shaped;
                $(
                    if shape.has(model!(@window [$($rsince)?] [$($runtil)?])) {
                        map.serialize_entry($rwire, &Shaped(&self.$r, shape))?;
                    }
                )*
                $(
                    if let Some(value) = &self.$o
                        && shape.has(model!(@window [$($osince)?] [$($ountil)?]))
                    {
                        map.serialize_entry($owire, &Shaped(value, shape))?;
                    }
                )*
                Ok(())
            }
        }
    };

    (@plain $name:ident) => {
        impl $crate::wire::Wire for $name {
            fn write<S: serde::Serializer>(
                &self,
                shape: $crate::wire::Shape,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $crate::wire::WireObject::members(self, shape, &mut map)?;
                map.end()
            }
        }
    };

    // A result inside another message is a plain object: its members and its own `_meta`.
    (@result $name:ident { $($body:item)* }) => {
        impl $crate::wire::Wire for $name {
            fn write<S: serde::Serializer>(
                &self,
                shape: $crate::wire::Shape,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $crate::wire::WireObject::members(self, shape, &mut map)?;
                $crate::wire::envelope::plain_meta(&mut map, self.meta.as_ref())?;
                map.end()
            }
        }

        impl $crate::wire::ResultBody for $name {
            fn meta(&self) -> Option<&$crate::json::Members> {
                self.meta.as_ref()
            }
            $($body)*
        }
    };

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

/// Declares a set of strings that may grow: a value nobody knows is kept as it came.
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
            /// A value this library does not know.
            #[cfg_attr(test, arbitrary(skip))]
            Other(Box<str>),
        }

        impl $name {
            /// The value as it is written on the wire.
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
