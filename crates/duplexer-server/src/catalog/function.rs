//! The shapes of functions that can be handlers.

use std::marker::PhantomData;
use std::sync::Arc;

use duplexer_core::error::McpError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::threads;
use crate::kernel::context::{AbandonOnDrop, Context, StateMap};

/// Token that seals a trait: a method that takes it can be neither called nor implemented outside this crate.
#[derive(Clone, Copy, Debug)]
pub struct Seal(pub(crate) ());

/// Marks conversions of a value that is the item itself.
#[derive(Debug)]
pub enum Direct {}
/// Marks conversions of a function that returns the item.
#[derive(Debug)]
pub enum Constructor {}
/// Marks a conversion that no type has.
///
/// With a second candidate besides [`Constructor`], the compiler reports the conversion trait itself and its notes,
/// instead of the number of arguments that a function lacks.
#[derive(Debug)]
pub enum Unmatched {}

/// A trait that no type implements.
pub trait Impossible {
    /// Returns any type, since there is no value to call it with.
    fn never<T>(self) -> T;
}

/// An async function that can be a handler: of nothing, of its arguments, of a context, or of a context and its
/// arguments.
///
/// The context is a `Context<S>` with the server's state, or a plain `Context` if the handler does not use the state.
/// `Shape` only distinguishes the shapes and is always inferred.
///
/// The trait is sealed. It is implemented for functions and closures of these shapes.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a tool, prompt or resource",
    label = "not a function of the right shape",
    note = "the function is async and takes its arguments as one value: `async fn(Args) -> R` or `async fn(Context<S>, Args) -> R`",
    note = "`Args` implements `Deserialize` and `JsonSchema`; with `#[tool]`, `#[prompt]` and `#[resource]` the arguments can be plain parameters instead"
)]
pub trait Function<S, A, Shape>: Send + Sync + 'static {
    /// Return type of the function.
    type Output: 'static;

    #[doc(hidden)]
    fn call(
        &self,
        cx: Context<S>,
        arguments: A,
        seal: Seal,
    ) -> impl Future<Output = Self::Output> + Send + 'static;
}

/// A synchronous function that can be a [blocking tool](super::tool::Tool::blocking), of the same shapes as
/// [`Function`].
///
/// The trait is sealed. It is implemented for functions and closures of these shapes.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a blocking tool",
    label = "not the function of a blocking tool",
    note = "a blocking tool's function is not async: `fn(Args) -> R` or `fn(Context<S>, Args) -> R`"
)]
pub trait BlockingFunction<S, A, Shape>: Send + Sync + 'static {
    /// Return type of the function.
    type Output: Send + 'static;

    #[doc(hidden)]
    fn call(&self, cx: Context<S>, arguments: A, seal: Seal) -> Self::Output;
}

/// Arguments of a handler that takes none. Accepts and ignores any object.
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

/// Shape of functions that take a context of any state.
#[derive(Debug)]
pub struct AnyState<Shape>(PhantomData<Shape>);

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
                _: Seal,
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

            fn call(&self, $cx: Context<S>, $given: $arguments, _: Seal) -> R {
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

/// A blocking function as an async one: each call runs on a thread of its own. Also the shape of such
/// functions.
pub(crate) struct OnThread<H>(Arc<H>);

impl<H> OnThread<H> {
    pub(crate) fn new(function: H) -> Self {
        Self(Arc::new(function))
    }
}

impl<S, A, H, Shape> Function<S, A, OnThread<Shape>> for OnThread<H>
where
    A: Send + 'static,
    H: BlockingFunction<S, A, Shape>,
    S: Send + Sync + 'static,
{
    type Output = Result<H::Output, McpError>;

    fn call(
        &self,
        cx: Context<S>,
        arguments: A,
        seal: Seal,
    ) -> impl Future<Output = Self::Output> + Send + 'static {
        let function = Arc::clone(&self.0);
        let abandon = AbandonOnDrop::new(&cx);
        async move {
            let output = threads::run(move || function.call(cx, arguments, seal)).await;
            abandon.ended();
            output
        }
    }
}
