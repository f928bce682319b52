//! The documents a schema consists of, and the names that references use: `$id`, `$anchor`, `$dynamicAnchor`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::error::CompileError;
use crate::text::push_token;
use crate::{metaschema, uri};

/// Keywords that hold one schema, a list of them, or schemas by name. Nothing else is searched for names: a `const`
/// that looks like a schema is none.
const ONE: [&str; 11] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Index of a resource: a document, or a part of one that has an `$id`.
pub(crate) type ResourceId = usize;

pub(crate) struct Resource<'d> {
    uri: String,
    root: &'d Value,
    /// Names of `$anchor` and `$dynamicAnchor`.
    anchors: HashMap<&'d str, &'d Value>,
    pub(crate) dynamic_anchors: HashMap<&'d str, &'d Value>,
    /// The dialect, if the resource or one around it names it.
    pub(crate) dialect: Option<&'d str>,
}

/// Where a schema was found.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) resource: ResourceId,
    pub(crate) location: String,
}

/// The target of a reference.
pub(crate) struct Target<'d> {
    pub(crate) schema: &'d Value,
    /// The anchor that the reference named, if that anchor is dynamic.
    pub(crate) dynamic_anchor: Option<String>,
}

#[derive(Default)]
pub(crate) struct Documents<'d> {
    pub(crate) resources: Vec<Resource<'d>>,
    by_uri: HashMap<String, ResourceId>,
    /// Where each schema lives, by the address of its value.
    homes: HashMap<usize, Home>,
}

pub(crate) fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

impl<'d> Documents<'d> {
    /// Adds a document under a URI. The URI can be empty for the root.
    pub(crate) fn add(&mut self, uri: &str, document: &'d Value) -> Home {
        let (uri, _) = uri::split_fragment(uri);
        let resource = self.resource(uri.to_owned(), document, None);
        let home = Home { resource, location: uri.to_owned() };
        self.scan(document, home.clone());
        home
    }

    fn resource(&mut self, uri: String, root: &'d Value, dialect: Option<&'d str>) -> ResourceId {
        let id = self.resources.len();
        self.by_uri.entry(uri.clone()).or_insert(id);
        let dialect = text(root, "$schema").or(dialect);
        let (anchors, dynamic_anchors) = (HashMap::new(), HashMap::new());
        self.resources.push(Resource { uri, root, anchors, dynamic_anchors, dialect });
        id
    }

    fn scan(&mut self, schema: &'d Value, home: Home) {
        let mut pending = vec![(schema, home)];
        while let Some((schema, mut home)) = pending.pop() {
            let Value::Object(members) = schema else {
                self.homes.insert(address(schema), home);
                continue;
            };
            home.resource = self.identify(schema, home.resource);
            let resource = &mut self.resources[home.resource];
            if let Some(anchor) = text(schema, "$anchor") {
                resource.anchors.insert(anchor, schema);
            }
            if let Some(anchor) = text(schema, "$dynamicAnchor") {
                resource.anchors.insert(anchor, schema);
                resource.dynamic_anchors.insert(anchor, schema);
            }
            self.homes.insert(address(schema), home.clone());
            subschemas(members, &home, &mut pending);
        }
    }

    /// The resource of a schema: a new one if the schema has an `$id`.
    fn identify(&mut self, schema: &'d Value, around: ResourceId) -> ResourceId {
        let Some(id) = text(schema, "$id") else { return around };
        let outer = &self.resources[around];
        let uri = uri::resolve(&outer.uri, id);
        if std::ptr::eq(outer.root, schema) {
            // The root of a document: its own name, beside the one it was registered under.
            self.by_uri.insert(uri.clone(), around);
            self.resources[around].uri = uri;
            return around;
        }
        let dialect = outer.dialect;
        self.resource(uri, schema, dialect)
    }

    pub(crate) fn home(&self, schema: &Value) -> Option<&Home> {
        self.homes.get(&address(schema))
    }

    /// Finds the document that is registered under `uri`, or the metaschema's.
    pub(crate) fn root_of(&mut self, uri: &str) -> Option<&'d Value> {
        self.resource_of(uri).map(|resource| self.resources[resource].root)
    }

    fn resource_of(&mut self, uri: &str) -> Option<ResourceId> {
        if let Some(resource) = self.by_uri.get(uri) {
            return Some(*resource);
        }
        let document = metaschema::document(uri)?;
        Some(self.add(uri, document).resource)
    }

    /// Resolves a reference that a schema at `from` makes.
    pub(crate) fn resolve(&mut self, reference: &str, from: &Home) -> Result<Target<'d>, CompileError> {
        let fail = |reason: &str| {
            CompileError::new(&*from.location, format!("the reference {reference:?} {reason}"))
        };
        let uri = uri::resolve(&self.resources[from.resource].uri, reference);
        let (_, fragment) = uri::split_fragment(reference);
        let Some(resource) = self.resource_of(&uri) else {
            return Err(fail(
                "leads to another document; documents are never fetched, so write the schema into `$defs`",
            ));
        };
        let fragment = uri::percent_decoded(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.follow(resource, &fragment).ok_or_else(|| fail("leads nowhere"));
        }
        let found = &self.resources[resource];
        let schema =
            *found.anchors.get(&*fragment).ok_or_else(|| fail("names an anchor that does not exist"))?;
        let is_dynamic = found.dynamic_anchors.contains_key(&*fragment);
        Ok(Target { schema, dynamic_anchor: is_dynamic.then_some(fragment) })
    }

    /// Follows a JSON pointer from the root of a resource.
    fn follow(&mut self, resource: ResourceId, pointer: &str) -> Option<Target<'d>> {
        let mut schema = self.resources[resource].root;
        let mut home = self.homes.get(&address(schema))?.clone();
        for token in pointer.split('/').skip(1) {
            let name = token.replace("~1", "/").replace("~0", "~");
            schema = match schema {
                Value::Object(members) => members.get(&name)?,
                Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
                _ => return None,
            };
            push_token(&mut home.location, &name);
            if let Some(found) = self.homes.get(&address(schema)) {
                home = found.clone();
            }
        }
        if !self.homes.contains_key(&address(schema)) {
            // A place that no keyword declares to be a schema; the reference makes it one.
            self.scan(schema, home);
        }
        Some(Target { schema, dynamic_anchor: None })
    }
}

fn text<'d>(schema: &'d Value, keyword: &str) -> Option<&'d str> {
    schema.get(keyword).and_then(Value::as_str)
}

fn subschemas<'d>(members: &'d Map<String, Value>, home: &Home, pending: &mut Vec<(&'d Value, Home)>) {
    let mut push = |schema, keyword: &str, token: Option<&str>| {
        let mut home = home.clone();
        push_token(&mut home.location, keyword);
        if let Some(token) = token {
            push_token(&mut home.location, token);
        }
        pending.push((schema, home));
    };
    for (keyword, value) in members {
        let keyword = keyword.as_str();
        match value {
            Value::Array(items) if SEVERAL.contains(&keyword) => {
                for (index, item) in items.iter().enumerate() {
                    push(item, keyword, Some(&index.to_string()));
                }
            }
            Value::Object(named) if NAMED.contains(&keyword) => {
                named.iter().for_each(|(name, schema)| push(schema, keyword, Some(name)));
            }
            schema if ONE.contains(&keyword) => push(schema, keyword, None),
            _ => {}
        }
    }
}
