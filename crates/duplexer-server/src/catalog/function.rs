//! The shapes of functions that can be part of a server.

use crate::kernel::context::{Context, StateMap};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// An async function that can be part of a server: of nothing, of its arguments, of a context, or of a context and its
/// arguments.
///
/// The context is a `Context<S>` with the server's state, or a plain `Context` where the state does not matter. `Shape` only
/// tells the shapes apart.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a tool, prompt or resource",
    label = "not a function of the right shape",
    note = "the function is async and takes its arguments as one value: `async fn(Args) -> R` or `async fn(Context<S>, Args) -> R`",
    note = "`Args` implements `Deserialize` and `JsonSchema`; with `#[tool]`, `#[prompt]` and `#[resource]` the arguments can be plain parameters instead"
)]
pub trait Function<S, A, Shape>: Send + Sync + 'static {
    /// What the function returns.
    type Output: 'static;

    /// Calls it.
    fn call(&self, cx: Context<S>, arguments: A) -> impl Future<Output = Self::Output> + Send + 'static;
}

/// A plain function that can be a tool on a thread of its own: of the same shapes.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a blocking tool",
    label = "not the function of a blocking tool",
    note = "a blocking tool's function is not async: `fn(Args) -> R` or `fn(Context<S>, Args) -> R`"
)]
pub trait BlockingFunction<S, A, Shape>: Send + Sync + 'static {
    /// What the function returns.
    type Output: Send + 'static;

    /// Calls it.
    fn call(&self, cx: Context<S>, arguments: A) -> Self::Output;
}

/// The arguments of a tool that has none. Whatever is sent is ignored.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoArguments;

impl<'de> Deserialize<'de> for NoArguments {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl schemars::JsonSchema for NoArguments {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NoArguments".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object", "properties": {} })
    }
}

/// Marks functions that take a context without caring for the state.
#[derive(Debug)]
pub struct AnyState<Shape>(std::marker::PhantomData<Shape>);

macro_rules! shapes {
    ($(
        [$($generic:ident)?] $arguments:ty, $shape:ty, ($($parameter:ty),*) => |$cx:ident, $given:ident| ($($value:expr),*);
    )*) => {$(
        impl<S, $($generic,)? F, Fut> Function<S, $arguments, $shape> for F
        where
            F: Fn($($parameter),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output: 'static> + Send + 'static,
            $($generic: DeserializeOwned,)?
        {
            type Output = Fut::Output;

            fn call(
                &self,
                $cx: Context<S>,
                $given: $arguments,
            ) -> impl Future<Output = Fut::Output> + Send + 'static {
                let _ = (&$cx, &$given);
                self($($value),*)
            }
        }

        impl<S, $($generic,)? F, R> BlockingFunction<S, $arguments, $shape> for F
        where
            F: Fn($($parameter),*) -> R + Send + Sync + 'static,
            R: Send + 'static,
            $($generic: DeserializeOwned,)?
        {
            type Output = R;

            fn call(&self, $cx: Context<S>, $given: $arguments) -> R {
                let _ = (&$cx, &$given);
                self($($value),*)
            }
        }
    )*};
}

shapes! {
    []  NoArguments, fn(),                              ()                    => |cx, arguments| ();
    []  NoArguments, fn(Context<S>),                    (Context<S>)          => |cx, arguments| (cx);
    []  NoArguments, AnyState<fn(Context)>,             (Context<StateMap>)     => |cx, arguments| (cx.untyped());
    [A] A,           fn(A),                             (A)                   => |cx, arguments| (arguments);
    [A] A,           fn(Context<S>, A),                 (Context<S>, A)       => |cx, arguments| (cx, arguments);
    [A] A,           AnyState<fn(Context, A)>,          (Context<StateMap>, A)  => |cx, arguments| (cx.untyped(), arguments);
}
