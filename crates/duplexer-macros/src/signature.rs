//! Reads the signature of a function that becomes a tool, prompt or resource.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Expr, FnArg, Ident, ItemFn, Pat, Path, PathArguments, Type};

/// A function, taken apart.
pub(crate) struct Signature {
    /// The function without the attributes of its parameters, under the name it is called by.
    pub(crate) function: ItemFn,
    pub(crate) docs: String,
    pub(crate) context: Option<Context>,
    pub(crate) parameters: Vec<Parameter>,
}

/// The type of the context, and the state in it if it is spelled out.
pub(crate) struct Context {
    pub(crate) ty: Type,
    pub(crate) state: Option<Type>,
}

pub(crate) struct Parameter {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// Documentation, and what serde and schemars are told.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) default: Option<Default>,
    pub(crate) header: Option<Expr>,
    pub(crate) complete: Option<Path>,
}

pub(crate) enum Default {
    /// That of the type.
    OfType,
    /// This one.
    Value(Expr),
}

/// What is read, in an error's words.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) what: &'static str,
    pub(crate) example: &'static str,
    pub(crate) asynchronous: bool,
}

impl Wanted {
    fn error(self, span: Span, problem: &str) -> Error {
        Error::new(span, format!("{problem}\n\na {} looks like this:\n    {}", self.what, self.example))
    }
}

impl Signature {
    pub(crate) fn read(mut function: ItemFn, wanted: Wanted) -> syn::Result<Self> {
        let signature = &function.sig;
        if wanted.asynchronous && signature.asyncness.is_none() {
            let problem = format!("a {}'s function is async", wanted.what);
            return Err(wanted.error(signature.fn_token.span, &problem));
        }
        if let (false, Some(token)) = (wanted.asynchronous, signature.asyncness) {
            let problem = format!("a blocking {} is a plain `fn`: it gets a thread", wanted.what);
            return Err(wanted.error(token.span, &problem));
        }
        if !signature.generics.params.is_empty() {
            let problem = format!("a {} has no generic parameters: its types must be known", wanted.what);
            return Err(wanted.error(signature.ident.span(), &problem));
        }
        let docs = documentation(&function.attrs);
        let mut context = None;
        let mut parameters = Vec::new();
        for (place, argument) in function.sig.inputs.iter_mut().enumerate() {
            match argument {
                FnArg::Receiver(receiver) => {
                    let problem =
                        format!("a {} is a free function; shared state is in the context", wanted.what);
                    return Err(wanted.error(receiver.self_token.span, &problem));
                }
                FnArg::Typed(argument) => {
                    if place == 0 && is_context(&mut argument.attrs, &argument.ty) {
                        context = Some(Context::of(&argument.ty));
                    } else {
                        if context.is_none() && is_called_context(&argument.ty) {
                            let problem = "the context is the first parameter, and owned: `cx: Context<State>` or `cx: Context`";
                            return Err(wanted.error(argument.ty.span(), problem));
                        }
                        parameters.push(Parameter::read(argument, wanted)?);
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

/// Marked with `#[cx]`, or of a type called `Context`.
fn is_context(attributes: &mut Vec<Attribute>, ty: &Type) -> bool {
    let before = attributes.len();
    attributes.retain(|attribute| !attribute.path().is_ident("cx"));
    let owned = !matches!(ty, Type::Reference(_));
    (owned && is_called_context(ty)) || attributes.len() < before
}

fn is_called_context(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_called_context(&reference.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Context"),
        _ => false,
    }
}

impl Parameter {
    fn read(argument: &mut syn::PatType, wanted: Wanted) -> syn::Result<Self> {
        let name = match &*argument.pat {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => name.ident.clone(),
            other => {
                let problem = "a parameter is a name here: clients must know what to call it";
                return Err(wanted.error(other.span(), problem));
            }
        };
        if let Type::Reference(reference) = &*argument.ty {
            let problem = "a parameter is owned: it comes from a message (`String` instead of `&str`)";
            return Err(wanted.error(reference.and_token.span, problem));
        }
        if let Type::ImplTrait(bounds) = &*argument.ty {
            let problem = "a parameter has a type of its own: it is read from a message";
            return Err(wanted.error(bounds.impl_token.span, problem));
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

    /// The parameter as a field of the struct that arguments are read into.
    pub(crate) fn field(&self, number: usize) -> (TokenStream, Option<TokenStream>) {
        let Self { name, ty, attributes, .. } = self;
        let header = self.header.as_ref().map(|header| quote!(#[schemars(extend("x-mcp-header" = #header))]));
        let (default, function) = match &self.default {
            None => (None, None),
            Some(Default::OfType) => (Some(quote!(#[serde(default)])), None),
            Some(Default::Value(value)) => {
                let provider = Ident::new(&format!("__default_{number}"), Span::call_site());
                let path = provider.to_string();
                // A text may be meant for any type that is made from one; every other literal says what it is.
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

/// Documentation comments as one text.
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
