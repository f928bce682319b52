//! Parses the signature of a function that becomes a tool, prompt or resource.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Expr, FnArg, Ident, ItemFn, Pat, Path, PathArguments, Type};

/// A parsed function.
pub(crate) struct Signature {
    /// The function without the attributes of its parameters.
    pub(crate) function: ItemFn,
    pub(crate) docs: String,
    pub(crate) context: Option<Context>,
    pub(crate) parameters: Vec<Parameter>,
}

/// The type of the context, and of the state if the type names it.
pub(crate) struct Context {
    pub(crate) ty: Type,
    pub(crate) state: Option<Type>,
}

pub(crate) struct Parameter {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// Documentation and attributes of serde and schemars.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) default: Option<Default>,
    pub(crate) header: Option<Expr>,
    pub(crate) complete: Option<Path>,
}

pub(crate) enum Default {
    /// The default of the type.
    OfType,
    /// The value of an expression.
    Value(Expr),
}

/// The kind of function that is expected, as errors describe it.
#[derive(Clone, Copy)]
pub(crate) struct Expected {
    pub(crate) what: &'static str,
    pub(crate) example: &'static str,
    pub(crate) asynchronous: bool,
}

impl Expected {
    fn error(self, span: Span, problem: &str) -> Error {
        Error::new(span, format!("{problem}\n\na {} looks like this:\n    {}", self.what, self.example))
    }
}

impl Signature {
    pub(crate) fn read(mut function: ItemFn, expected: Expected) -> syn::Result<Self> {
        let signature = &function.sig;
        if expected.asynchronous && signature.asyncness.is_none() {
            let problem = format!("a {}'s function is async", expected.what);
            return Err(expected.error(signature.fn_token.span, &problem));
        }
        if let (false, Some(token)) = (expected.asynchronous, signature.asyncness) {
            let problem = format!("a blocking {} is a plain `fn`: it gets a thread", expected.what);
            return Err(expected.error(token.span, &problem));
        }
        if !signature.generics.params.is_empty() {
            let problem = format!("a {} has no generic parameters: its types must be known", expected.what);
            return Err(expected.error(signature.ident.span(), &problem));
        }
        let docs = documentation(&function.attrs);
        let mut context = None;
        let mut parameters = Vec::new();
        for (place, argument) in function.sig.inputs.iter_mut().enumerate() {
            match argument {
                FnArg::Receiver(receiver) => {
                    let problem =
                        format!("a {} is a free function; shared state is in the context", expected.what);
                    return Err(expected.error(receiver.self_token.span, &problem));
                }
                FnArg::Typed(argument) => {
                    if place == 0 && is_context(&mut argument.attrs, &argument.ty) {
                        context = Some(Context::of(&argument.ty));
                    } else {
                        if context.is_none() && is_named_context(&argument.ty) {
                            let problem = "the context is the first parameter, and owned: `cx: Context<State>` or `cx: Context`";
                            return Err(expected.error(argument.ty.span(), problem));
                        }
                        parameters.push(Parameter::read(argument, expected)?);
                    }
                }
            }
        }
        Ok(Self { function, docs, context, parameters })
    }
}

impl Context {
    fn of(ty: &Type) -> Self {
        let state = match ty {
            Type::Path(path) => path.path.segments.last().and_then(|last| match &last.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    arguments.args.first().and_then(|one| match one {
                        syn::GenericArgument::Type(state) => Some(state.clone()),
                        _ => None,
                    })
                }
                _ => None,
            }),
            _ => None,
        };
        Self { ty: ty.clone(), state }
    }
}

/// Returns whether a parameter is marked with `#[cx]`, or of a type named `Context`.
fn is_context(attributes: &mut Vec<Attribute>, ty: &Type) -> bool {
    let before = attributes.len();
    attributes.retain(|attribute| !attribute.path().is_ident("cx"));
    let owned = !matches!(ty, Type::Reference(_));
    (owned && is_named_context(ty)) || attributes.len() < before
}

fn is_named_context(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_named_context(&reference.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Context"),
        _ => false,
    }
}

impl Parameter {
    fn read(argument: &mut syn::PatType, expected: Expected) -> syn::Result<Self> {
        let name = match &*argument.pat {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => name.ident.clone(),
            other => {
                let problem = "a parameter is a name here: clients must know what to call it";
                return Err(expected.error(other.span(), problem));
            }
        };
        if let Type::Reference(reference) = &*argument.ty {
            let problem = "a parameter is owned: it comes from a message (`String` instead of `&str`)";
            return Err(expected.error(reference.and_token.span, problem));
        }
        if let Type::ImplTrait(bounds) = &*argument.ty {
            let problem = "a parameter has a type of its own: it is read from a message";
            return Err(expected.error(bounds.impl_token.span, problem));
        }
        let mut parameter = Self {
            name,
            ty: (*argument.ty).clone(),
            attributes: Vec::new(),
            default: None,
            header: None,
            complete: None,
        };
        for attribute in std::mem::take(&mut argument.attrs) {
            let path = attribute.path();
            if path.is_ident("default") {
                parameter.default = Some(match &attribute.meta {
                    syn::Meta::Path(_) => Default::OfType,
                    syn::Meta::List(_) => Default::Value(attribute.parse_args()?),
                    syn::Meta::NameValue(value) => Default::Value(value.value.clone()),
                });
            } else if path.is_ident("header") {
                parameter.header = Some(attribute.parse_args()?);
            } else if path.is_ident("complete") {
                parameter.complete = Some(attribute.parse_args()?);
            } else if ["doc", "serde", "schemars"].iter().any(|known| path.is_ident(known)) {
                parameter.attributes.push(attribute);
            } else if ["allow", "expect", "cfg"].iter().any(|known| path.is_ident(known)) {
                argument.attrs.push(attribute);
            } else {
                let problem = "a parameter takes `#[default(..)]`, `#[header(..)]`, `#[complete(..)]`, \
                               `#[serde(..)]`, `#[schemars(..)]` and documentation";
                return Err(Error::new_spanned(path, problem));
            }
        }
        Ok(parameter)
    }

    /// Returns the parameter as a field of the struct that arguments are decoded into, and the function of its default.
    pub(crate) fn field(&self, number: usize) -> (TokenStream, Option<TokenStream>) {
        let Self { name, ty, attributes, .. } = self;
        let header = self.header.as_ref().map(|header| quote!(#[schemars(extend("x-mcp-header" = #header))]));
        let (default, function) = match &self.default {
            None => (None, None),
            Some(Default::OfType) => (Some(quote!(#[serde(default)])), None),
            Some(Default::Value(value)) => {
                let provider = Ident::new(&format!("__default_{number}"), Span::call_site());
                let path = provider.to_string();
                // A string literal can be meant for any type that converts from it; other literals have one type.
                let value = match value {
                    Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                        quote!(::core::convert::From::from(#text))
                    }
                    value => quote!(#value),
                };
                (Some(quote!(#[serde(default = #path)])), Some(quote!(fn #provider() -> #ty { #value })))
            }
        };
        (quote!(#(#attributes)* #default #header #name: #ty,), function)
    }
}

/// Joins documentation comments into one text.
pub(crate) fn documentation(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let syn::Meta::NameValue(value) = &attribute.meta
            && let Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &value.value
        {
            lines.push(text.value());
        }
    }
    let lines: Vec<&str> =
        lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    lines.join("\n").trim().to_owned()
}
