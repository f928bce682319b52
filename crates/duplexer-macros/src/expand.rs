//! Expands a signature into calls of the public API.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ItemFn;

use crate::options::Options;
use crate::signature::{Expected, Signature};

/// Parses the options and the function, and expands them. A fault becomes a compile error.
pub(crate) fn run(
    options: TokenStream,
    function: TokenStream,
    expand: impl FnOnce(&Options, ItemFn) -> syn::Result<TokenStream>,
) -> TokenStream {
    let expanded =
        syn::parse2::<Options>(options).and_then(|options| expand(&options, free_function(function)?));
    expanded.unwrap_or_else(|error| error.to_compile_error())
}

/// Parses the annotated item, which must be a function.
fn free_function(item: TokenStream) -> syn::Result<ItemFn> {
    let problem = "this belongs on a function: `#[tool]`, `#[prompt]` and `#[resource(\"..\")]` make one part of a server";
    syn::parse2(item).map_err(|error| syn::Error::new(error.span(), problem))
}

const TOOL: Expected = Expected {
    what: "tool",
    example: "#[tool]\n    async fn add(a: i64, b: i64) -> i64 { a + b }",
    asynchronous: true,
};
const BLOCKING_TOOL: Expected = Expected {
    what: "tool",
    example: "#[tool(blocking)]\n    fn digest(text: String) -> String { .. }",
    asynchronous: false,
};
const PROMPT: Expected = Expected {
    what: "prompt",
    example: "#[prompt]\n    async fn review(code: String) -> String { format!(\"Review this: {code}\") }",
    asynchronous: true,
};
const RESOURCE: Expected = Expected {
    what: "resource",
    example: "#[resource(\"db://{table}/{id}\")]\n    async fn row(table: String, id: u64) -> String { .. }",
    asynchronous: true,
};

pub(crate) fn tool(options: &Options, function: ItemFn) -> syn::Result<TokenStream> {
    const FLAGS: [&str; 9] = [
        "blocking",
        "task",
        "read_only",
        "destructive",
        "idempotent",
        "closed_world",
        "check_output",
        "app_only",
        "model_only",
    ];
    options.check(&["name", "title", "description", "timeout", "view", "meta"], &FLAGS)?;
    let blocking = options.has("blocking");
    let expansion = Expansion::new(options, function, if blocking { BLOCKING_TOOL } else { TOOL })?;
    let krate = &expansion.krate;
    let mut calls = expansion.described(options);
    calls.extend(task(options, krate)?);
    for flag in FLAGS.iter().skip(2).filter(|flag| options.has(flag)) {
        let method = format_ident!("{flag}");
        calls.extend(quote!(.#method()));
    }
    if let Some(seconds) = options.value("timeout") {
        calls.extend(quote!(.timeout(::core::time::Duration::from_secs_f64((#seconds) as f64))));
    }
    if let Some(view) = options.value("view") {
        calls.extend(quote!(.view(#view)));
    }
    for (key, value) in options.pairs("meta")? {
        calls.extend(quote!(.meta(#key, #value)));
    }
    let name = expansion.name(options);
    let call = expansion.call();
    let converted = |call| quote!(#krate::__private::Returned(#call).output());
    let (constructor, body) = if blocking {
        (quote!(blocking), converted(call))
    } else {
        let converted = converted(quote!(#call.await));
        (quote!(new), quote!(async move { #converted }))
    };
    let pattern = expansion.pattern();
    let make = quote! {
        #[allow(unused_imports)]
        use #krate::__private::PassThrough as _;
        #krate::Tool::#constructor(#name, |#pattern| #body) #calls
    };
    Ok(expansion.finish(&quote!(Tool), &make))
}

/// Returns the call that makes a tool task-capable, if `task` or `task(..)` says so.
fn task(options: &Options, krate: &TokenStream) -> syn::Result<TokenStream> {
    const FLAGS: [&str; 3] = ["required", "explicit", "resumable"];
    const TIMES: [&str; 2] = ["answer_within", "cancel_grace"];
    let mut policy = quote!(#krate::tasks::TaskPolicy::new());
    if let Some(group) = options.group("task") {
        group.check(&TIMES, &FLAGS)?;
        for flag in FLAGS.iter().filter(|flag| group.has(flag)) {
            let method = format_ident!("{flag}");
            policy.extend(quote!(.#method()));
        }
        for time in TIMES {
            if let Some(seconds) = group.value(time) {
                let method = format_ident!("{time}");
                policy.extend(quote!(.#method(::core::time::Duration::from_secs_f64((#seconds) as f64))));
            }
        }
    }
    Ok(if options.has("task") { quote!(.task(#policy)) } else { TokenStream::new() })
}

pub(crate) fn prompt(options: &Options, function: ItemFn) -> syn::Result<TokenStream> {
    options.check(&["name", "title", "description"], &[])?;
    let expansion = Expansion::new(options, function, PROMPT)?;
    let krate = &expansion.krate;
    let (name, calls) = (expansion.name(options), expansion.described(options));
    let (pattern, call, complete) = (expansion.pattern(), expansion.call(), expansion.completions());
    let make = quote! {
        #krate::Prompt::new(#name, |#pattern| async move { #call.await }) #calls #complete
    };
    Ok(expansion.finish(&quote!(Prompt), &make))
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
    let constructor = if is_template { quote!(template) } else { quote!(new) };
    let make = quote! {
        #krate::Resource::#constructor(#uri, |#pattern| async move { #call.await })
            .name(#name) #calls #complete
    };
    Ok(expansion.finish(&quote!(Resource), &make))
}

/// The parts that tools, prompts and resources share.
struct Expansion {
    krate: TokenStream,
    signature: Signature,
}

impl Expansion {
    fn new(options: &Options, function: ItemFn, expected: Expected) -> syn::Result<Self> {
        Ok(Self { krate: options.krate()?, signature: Signature::read(function, expected)? })
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

    /// Returns the calls that set title and description.
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

    /// Returns the parameters of the closure: the context and the arguments, if the function takes them.
    fn pattern(&self) -> TokenStream {
        let context = self.signature.context.as_ref().map(|context| {
            let ty = &context.ty;
            quote!(__cx: #ty,)
        });
        let arguments = (!self.signature.parameters.is_empty()).then(|| quote!(__arguments: __Arguments));
        quote!(#context #arguments)
    }

    /// Returns the call of the original function.
    fn call(&self) -> TokenStream {
        let function = &self.signature.function.sig.ident;
        let context = self.signature.context.as_ref().map(|_| quote!(__cx,));
        let names = self.signature.parameters.iter().map(|parameter| &parameter.name);
        quote!(#function::call(#context #(__arguments.#names),*))
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

    /// Returns the struct that arguments are decoded into, if there are any.
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

    /// Returns two items of the function's name: a function that returns the tool, and a braced struct whose associated
    /// function `call` is the original function.
    ///
    /// Neither captures patterns, so a parameter or variable of the same name remains a binding.
    fn finish(&self, product: &TokenStream, make: &TokenStream) -> TokenStream {
        let krate = &self.krate;
        let Signature { function, context, .. } = &self.signature;
        let (name, vis) = (&function.sig.ident, &function.vis);
        let docs = function.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
        let arguments = self.arguments();
        let (generics, state) = match context.as_ref().map(|context| &context.state) {
            Some(Some(state)) => (None, quote!(#state)),
            _ => (Some(quote!(<__S: ::core::marker::Send + ::core::marker::Sync + 'static>)), quote!(__S)),
        };
        let about = format!("Namespace of `{name}::call`, the function that `{name}()` registers.");
        let shared =
            |attribute: &&syn::Attribute| ["cfg", "allow"].iter().any(|one| attribute.path().is_ident(one));
        let shared: Vec<_> = function.attrs.iter().filter(shared).collect();
        let mut original = function.clone();
        original.sig.ident = format_ident!("call");
        quote! {
            #(#docs)*
            #(#shared)*
            #vis fn #name #generics() -> #krate::#product<#state> {
                #arguments
                #make
            }

            #[doc = #about]
            #(#shared)*
            #[allow(non_camel_case_types)]
            #[derive(Debug)]
            #vis struct #name {}

            #(#shared)*
            impl #name {
                #[allow(clippy::unused_async, clippy::needless_pass_by_value)]
                #original
            }
        }
    }
}
