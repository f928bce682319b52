//! From a signature to calls of the public interface.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{ItemFn, ReturnType};

use crate::options::Options;
use crate::signature::{Signature, Wanted};

/// Expands, or says what is wrong; then the function stays as it is, so that nothing else complains.
pub(crate) fn run(
    options: TokenStream,
    function: TokenStream,
    expand: impl FnOnce(&Options, ItemFn) -> syn::Result<TokenStream>,
) -> TokenStream {
    let expanded =
        syn::parse2::<Options>(options).and_then(|options| expand(&options, free_function(function)?));
    expanded.unwrap_or_else(|error| error.to_compile_error())
}

/// Only functions can be any of the three.
fn free_function(item: TokenStream) -> syn::Result<ItemFn> {
    let problem = "this belongs on a function: `#[tool]`, `#[prompt]` and `#[resource(\"..\")]` make one part of a server";
    syn::parse2(item).map_err(|error| syn::Error::new(error.span(), problem))
}

const TOOL: Wanted = Wanted {
    what: "tool",
    example: "#[tool]\n    async fn add(a: i64, b: i64) -> i64 { a + b }",
    asynchronous: true,
};
const BLOCKING_TOOL: Wanted = Wanted {
    what: "tool",
    example: "#[tool(blocking)]\n    fn digest(text: String) -> String { .. }",
    asynchronous: false,
};
const PROMPT: Wanted = Wanted {
    what: "prompt",
    example: "#[prompt]\n    async fn review(code: String) -> String { format!(\"Review this: {code}\") }",
    asynchronous: true,
};
const RESOURCE: Wanted = Wanted {
    what: "resource",
    example: "#[resource(\"db://{table}/{id}\")]\n    async fn row(table: String, id: u64) -> String { .. }",
    asynchronous: true,
};

pub(crate) fn tool(options: &Options, function: ItemFn) -> syn::Result<TokenStream> {
    const FLAGS: [&str; 6] =
        ["blocking", "read_only", "destructive", "idempotent", "closed_world", "check_output"];
    options.check(&["name", "title", "description", "timeout"], &FLAGS)?;
    let blocking = options.has("blocking");
    let expansion = Expansion::new(options, function, if blocking { BLOCKING_TOOL } else { TOOL })?;
    let krate = &expansion.krate;
    let mut calls = expansion.described(options);
    for flag in FLAGS.iter().skip(1).filter(|flag| options.has(flag)) {
        let method = format_ident!("{flag}");
        calls.extend(quote!(.#method()));
    }
    if let Some(seconds) = options.value("timeout") {
        calls.extend(quote!(.timeout(::core::time::Duration::from_secs_f64((#seconds) as f64))));
    }
    let name = expansion.name(options);
    let call = expansion.call();
    let settled = |call| quote!(#krate::__private::Returned(#call).settle());
    let (method, body) = if blocking {
        (quote!(blocking), settled(call))
    } else {
        let settled = settled(quote!(#call.await));
        (quote!(handler), quote!(async move { #settled }))
    };
    let pattern = expansion.pattern();
    let make = quote! {
        #[allow(unused_imports)]
        use #krate::__private::Settle as _;
        #krate::Tool::new(#name) #calls .#method(|#pattern| #body)
    };
    Ok(expansion.finish(&quote!(tool), &quote!(IntoTool), &quote!(into_tool), &quote!(Tool), &make))
}

pub(crate) fn prompt(options: &Options, function: ItemFn) -> syn::Result<TokenStream> {
    options.check(&["name", "title", "description"], &[])?;
    let expansion = Expansion::new(options, function, PROMPT)?;
    let krate = &expansion.krate;
    let (name, calls) = (expansion.name(options), expansion.described(options));
    let (pattern, call, complete) = (expansion.pattern(), expansion.call(), expansion.completions());
    let make = quote! {
        #krate::Prompt::new(#name) #calls .handler(|#pattern| async move { #call.await }) #complete
    };
    Ok(expansion.finish(&quote!(prompt), &quote!(IntoPrompt), &quote!(into_prompt), &quote!(Prompt), &make))
}

pub(crate) fn resource(options: &Options, function: ItemFn) -> syn::Result<TokenStream> {
    options.check(&["name", "title", "description", "mime_type"], &[])?;
    let Some(uri) = &options.uri else {
        let message = "a resource has a URI: `#[resource(\"config://app\")]`, or with variables \
                       `#[resource(\"db://{table}/{id}\")]`";
        return Err(syn::Error::new(proc_macro2::Span::call_site(), message));
    };
    let expansion = Expansion::new(options, function, RESOURCE)?;
    let krate = &expansion.krate;
    let mut calls = expansion.described(options);
    if let Some(mime_type) = options.value("mime_type") {
        calls.extend(quote!(.mime_type(#mime_type)));
    }
    let name = expansion.name(options);
    let (pattern, call, complete) = (expansion.pattern(), expansion.call(), expansion.completions());
    let is_template = uri.value().contains('{');
    if !is_template && !expansion.signature.parameters.is_empty() {
        let message = "these parameters have no place in the URI: write it with `{variables}`";
        return Err(syn::Error::new(uri.span(), message));
    }
    let begin = if is_template { quote!(template) } else { quote!(new) };
    let make = quote! {
        #krate::Resource::#begin(#uri).name(#name) #calls .handler(|#pattern| async move { #call.await }) #complete
    };
    Ok(expansion.finish(
        &quote!(resource),
        &quote!(IntoResource),
        &quote!(into_resource),
        &quote!(Resource),
        &make,
    ))
}

/// What all three have in common.
struct Expansion {
    krate: TokenStream,
    signature: Signature,
}

impl Expansion {
    fn new(options: &Options, function: ItemFn, wanted: Wanted) -> syn::Result<Self> {
        Ok(Self { krate: options.krate()?, signature: Signature::read(function, wanted)? })
    }

    fn name(&self, options: &Options) -> TokenStream {
        options.value("name").map_or_else(
            || {
                let name = syn::ext::IdentExt::unraw(&self.signature.function.sig.ident).to_string();
                quote!(#name)
            },
            |name| quote!(#name),
        )
    }

    /// Title and description.
    fn described(&self, options: &Options) -> TokenStream {
        let title = options.value("title").map(|title| quote!(.title(#title)));
        let docs = &self.signature.docs;
        let description = match options.value("description") {
            Some(description) => Some(quote!(.description(#description))),
            None if docs.is_empty() => None,
            None => Some(quote!(.description(#docs))),
        };
        quote!(#title #description)
    }

    /// The parameters of the closure: a context if there is one, the arguments if there are any.
    fn pattern(&self) -> TokenStream {
        let context = self.signature.context.as_ref().map(|context| {
            let ty = &context.ty;
            quote!(__cx: #ty,)
        });
        let arguments = (!self.signature.parameters.is_empty()).then(|| quote!(__arguments: __Arguments));
        quote!(#context #arguments)
    }

    /// The call of the function itself.
    fn call(&self) -> TokenStream {
        let context = self.signature.context.as_ref().map(|_| quote!(__cx,));
        let names = self.signature.parameters.iter().map(|parameter| &parameter.name);
        quote!(__function(#context #(__arguments.#names),*))
    }

    fn completions(&self) -> TokenStream {
        let parameters = self.signature.parameters.iter();
        let completed =
            parameters.filter_map(|parameter| Some((&parameter.name, parameter.complete.as_ref()?)));
        completed
            .map(|(name, function)| {
                let name = syn::ext::IdentExt::unraw(name).to_string();
                quote!(.complete(#name, #function))
            })
            .collect()
    }

    /// The struct that arguments are read into, if there are any.
    fn arguments(&self) -> TokenStream {
        let krate = &self.krate;
        if self.signature.parameters.is_empty() {
            return TokenStream::new();
        }
        let numbered = self.signature.parameters.iter().enumerate();
        let (fields, defaults): (Vec<_>, Vec<_>) =
            numbered.map(|(number, parameter)| parameter.field(number)).unzip();
        let serde = quote!(#krate::__private::serde).to_string().replace(' ', "");
        let schemars = quote!(#krate::__private::schemars).to_string().replace(' ', "");
        quote! {
            #(#defaults)*
            #[derive(#krate::__private::serde::Deserialize, #krate::__private::schemars::JsonSchema)]
            #[serde(crate = #serde)]
            #[schemars(crate = #schemars)]
            struct __Arguments { #(#fields)* }
        }
    }

    /// A unit struct with the function's name: it can be registered, and called as the function it was.
    fn finish(
        &self,
        module: &TokenStream,
        into: &TokenStream,
        method: &TokenStream,
        product: &TokenStream,
        make: &TokenStream,
    ) -> TokenStream {
        let krate = &self.krate;
        let Signature { function, context, .. } = &self.signature;
        let (name, vis) = (&function.sig.ident, &function.vis);
        let docs = function.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
        let arguments = self.arguments();
        let mut inner = function.clone();
        inner.sig.ident = format_ident!("__function");
        inner.vis = syn::Visibility::Inherited;
        inner.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
        let (generics, state) = match context.as_ref().map(|context| &context.state) {
            Some(Some(state)) => (None, quote!(#state)),
            _ => (Some(quote!(<__S: ::core::marker::Send + ::core::marker::Sync + 'static>)), quote!(__S)),
        };
        let types: Vec<_> = function.sig.inputs.iter().map(parameter_type).collect();
        let names: Vec<_> = (0..types.len()).map(|number| format_ident!("__{number}")).collect();
        let output = match &function.sig.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => quote!(#ty),
        };
        let (returned, call) = if function.sig.asyncness.is_some() {
            (
                quote!(#krate::__private::BoxFuture<'static, #output>),
                quote!(::std::boxed::Box::pin(__function(#(#names),*))),
            )
        } else {
            (quote!(#output), quote!(__function(#(#names),*)))
        };
        quote! {
            #(#docs)*
            #[allow(non_camel_case_types)]
            #[derive(Clone, Copy, Debug)]
            #vis struct #name;

            const _: () = {
                #[allow(clippy::unused_async, clippy::needless_pass_by_value)]
                #inner
                #arguments

                impl #generics #krate::#module::#into<#state> for #name {
                    fn #method(self) -> #krate::#product<#state> {
                        #make
                    }
                }

                impl ::core::ops::Deref for #name {
                    type Target = fn(#(#types),*) -> #returned;

                    fn deref(&self) -> &Self::Target {
                        fn __call(#(#names: #types),*) -> #returned {
                            #call
                        }
                        const CALL: fn(#(#types),*) -> #returned = __call;
                        &CALL
                    }
                }
            };
        }
    }
}

fn parameter_type(argument: &syn::FnArg) -> TokenStream {
    match argument {
        syn::FnArg::Typed(argument) => {
            let ty = &argument.ty;
            quote!(#ty)
        }
        syn::FnArg::Receiver(_) => TokenStream::new(),
    }
}
