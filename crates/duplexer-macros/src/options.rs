//! The options of an attribute.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitStr, Path, Token};

/// `"uri", name = "..", read_only, task(required)`
pub(crate) struct Options {
    pub(crate) uri: Option<LitStr>,
    settings: Vec<Setting>,
}

struct Setting {
    name: Ident,
    value: Option<Expr>,
    /// The options in parentheses.
    group: Option<Options>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let uri = if input.peek(LitStr) {
            let uri = input.parse()?;
            input.parse::<Option<Token![,]>>()?;
            Some(uri)
        } else {
            None
        };
        let settings = Punctuated::<Setting, Token![,]>::parse_terminated(input)?;
        Ok(Self { uri, settings: settings.into_iter().collect() })
    }
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(syn::ext::IdentExt::parse_any)?;
        if input.peek(syn::token::Paren) {
            let content;
            syn::parenthesized!(content in input);
            return Ok(Self { name, value: None, group: Some(content.parse()?) });
        }
        let value = if input.parse::<Option<Token![=]>>()?.is_some() { Some(input.parse()?) } else { None };
        Ok(Self { name, value, group: None })
    }
}

impl Options {
    /// Returns the value of `name = value`.
    pub(crate) fn value(&self, name: &str) -> Option<&Expr> {
        self.settings.iter().find(|setting| setting.name == name)?.value.as_ref()
    }

    /// Returns the options of `name(..)`.
    pub(crate) fn group(&self, name: &str) -> Option<&Self> {
        self.settings.iter().find(|setting| setting.name == name)?.group.as_ref()
    }

    /// Returns the pairs of `name = [(key, value), ..]`.
    pub(crate) fn pairs(&self, name: &str) -> syn::Result<Vec<(&Expr, &Expr)>> {
        let wrong = |at: &Expr| {
            let message = format!("`{name}` takes pairs: `{name} = [(\"com.example/key\", \"value\")]`");
            Error::new_spanned(at, message)
        };
        let pairs = match self.value(name) {
            None => return Ok(Vec::new()),
            Some(Expr::Array(array)) => &array.elems,
            Some(other) => return Err(wrong(other)),
        };
        let mut all = Vec::new();
        for pair in pairs {
            match pair {
                Expr::Tuple(tuple) if tuple.elems.len() == 2 => all.push((&tuple.elems[0], &tuple.elems[1])),
                other => return Err(wrong(other)),
            }
        }
        Ok(all)
    }

    /// Returns whether the option `name` is present.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.settings.iter().any(|setting| setting.name == name)
    }

    /// Returns the path of the crate that the expansion refers to.
    pub(crate) fn krate(&self) -> syn::Result<TokenStream> {
        match self.value("crate") {
            None => Ok(quote!(::duplexer)),
            Some(Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })) => {
                let path: Path = text.parse()?;
                Ok(quote!(#path))
            }
            Some(other) => Err(Error::new_spanned(other, "the path of a crate in quotes")),
        }
    }

    /// Rejects options that are in neither list, or lack or have a value wrongly.
    pub(crate) fn check(&self, valued: &[&str], flags: &[&str]) -> syn::Result<()> {
        for Setting { name, value, group } in &self.settings {
            let text = name.to_string();
            if group.is_some() && text != "task" {
                return Err(Error::new(name.span(), format!("`{text}` takes no options")));
            }
            let (known, wrong) = match value {
                Some(_) => (valued.contains(&&*text) || text == "crate", flags.contains(&&*text)),
                None => (flags.contains(&&*text), valued.contains(&&*text)),
            };
            if known {
                continue;
            }
            let message = match (wrong, value) {
                (true, Some(_)) => format!("`{text}` takes no value"),
                (true, None) => format!("`{text}` needs a value: `{text} = ..`"),
                _ => {
                    let all: Vec<&str> = valued.iter().chain(flags).copied().collect();
                    format!("there is no option `{text}`; there are: {}", all.join(", "))
                }
            };
            return Err(Error::new(name.span(), message));
        }
        Ok(())
    }
}
