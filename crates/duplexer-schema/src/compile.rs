//! Turns documents into an arena of nodes. A queue takes the place of recursion, so that schemas can be deep and cyclic.

mod keywords;

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::documents::{Documents, Home, ResourceId, address};
use crate::error::CompileError;
use crate::metaschema;
use crate::node::{Edge, Keyword, Node, NodeId};

/// A finished arena.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
    /// The dynamic anchors of each resource: index of the name, and the node. Empty without `$dynamicRef`.
    pub(crate) dynamic: Vec<Vec<(usize, NodeId)>>,
    /// How many names of dynamic anchors there are.
    pub(crate) anchors: usize,
}

/// Compiles `root`, which can refer to `documents`.
pub(crate) fn compile(root: &Value, documents: &[(String, Value)]) -> Result<Compiled, CompileError> {
    let mut compiler = Compiler::default();
    for (uri, document) in documents {
        compiler.documents.add(uri, document);
    }
    compiler.documents.add("", root);
    let root = compiler.node(root)?;
    compiler.run()?;
    Ok(compiler.finish(root))
}

/// The vocabularies of a dialect that can be absent.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    applicator: bool,
    unevaluated: bool,
    validation: bool,
}

impl Dialect {
    const FULL: Self = Self { applicator: true, unevaluated: true, validation: true };
}

#[derive(Default)]
pub(crate) struct Compiler<'d> {
    documents: Documents<'d>,
    nodes: Vec<Node>,
    /// The node of each schema, by the address of its value.
    index: HashMap<usize, NodeId>,
    queue: VecDeque<(NodeId, &'d Value, Home)>,
    /// Names that `$dynamicRef` uses.
    anchors: Vec<String>,
    dialects: HashMap<ResourceId, Dialect>,
}

impl<'d> Compiler<'d> {
    /// Returns the node of a schema and queues the schema if it is new.
    fn node(&mut self, schema: &'d Value) -> Result<NodeId, CompileError> {
        if let Some(node) = self.index.get(&address(schema)) {
            return Ok(*node);
        }
        let home = self.documents.home(schema).cloned();
        let home = home.ok_or_else(|| CompileError::new("", format!("{schema} is not a schema")))?;
        let number = |index: usize| {
            u32::try_from(index).map_err(|_| CompileError::new(&*home.location, "there are too many schemas"))
        };
        let id = NodeId(number(self.nodes.len())?);
        self.nodes.push(Node {
            location: home.location.as_str().into(),
            resource: number(home.resource)?,
            keywords: Vec::new(),
            is_shared: false,
        });
        self.index.insert(address(schema), id);
        self.queue.push_back((id, schema, home));
        Ok(id)
    }

    fn run(&mut self) -> Result<(), CompileError> {
        loop {
            while let Some((id, schema, home)) = self.queue.pop_front() {
                self.nodes[id.index()].keywords = self.keywords(schema, &home)?;
            }
            // Whatever a dynamic reference can lead to has a node as well.
            let targets: Vec<&'d Value> = self.dynamic_targets().map(|(_, _, schema)| schema).collect();
            for schema in targets {
                self.node(schema)?;
            }
            if self.queue.is_empty() {
                return Ok(());
            }
        }
    }

    fn dynamic_targets(&self) -> impl Iterator<Item = (ResourceId, usize, &'d Value)> {
        let resources = self.documents.resources.iter().enumerate();
        resources.flat_map(move |(id, resource)| {
            let anchors = self.anchors.iter().enumerate();
            anchors.filter_map(move |(anchor, name)| {
                resource.dynamic_anchors.get(name.as_str()).map(|schema| (id, anchor, *schema))
            })
        })
    }

    /// The dialect of a resource: 2020-12, or a registered metaschema that lists its vocabularies.
    fn dialect(&mut self, home: &Home) -> Result<Dialect, CompileError> {
        if let Some(dialect) = self.dialects.get(&home.resource) {
            return Ok(*dialect);
        }
        let named = self.documents.resources[home.resource].dialect;
        let uri = named.map(|uri| uri.strip_suffix('#').unwrap_or(uri));
        let dialect = match uri {
            None | Some(metaschema::DIALECT) => Dialect::FULL,
            Some(uri) => {
                let fail = |reason: String| CompileError::new(&*home.location, reason);
                let document = self.documents.root_of(uri).ok_or_else(|| {
                    fail(format!("the dialect {uri:?} is not known; use {:?}", metaschema::DIALECT))
                })?;
                vocabularies(document).map_err(fail)?
            }
        };
        self.dialects.insert(home.resource, dialect);
        Ok(dialect)
    }

    fn finish(mut self, root: NodeId) -> Compiled {
        let mut dynamic = vec![Vec::new(); self.documents.resources.len()];
        for (resource, anchor, schema) in self.dynamic_targets() {
            if let Some(node) = self.index.get(&address(schema)) {
                dynamic[resource].push((anchor, *node));
            }
        }
        let mut root = root;
        if self.anchors.is_empty() {
            skip_references(&mut self.nodes, &mut root);
        }
        let targets: Vec<NodeId> = dynamic.iter().flatten().map(|(_, node)| *node).collect();
        mark_shared(&mut self.nodes, root, &targets);
        prepare_choices(&mut self.nodes);
        Compiled { nodes: self.nodes, root, dynamic, anchors: self.anchors.len() }
    }
}

/// Vocabularies that a dialect can require. `format-assertion` is not among them: formats are annotations.
const KNOWN: [&str; 7] =
    ["core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "content"];

fn vocabularies(metaschema: &Value) -> Result<Dialect, String> {
    let Some(vocabularies) = metaschema.get("$vocabulary").and_then(Value::as_object) else {
        return Ok(Dialect::FULL);
    };
    let name = |uri: &'_ str| uri.strip_prefix(metaschema::VOCABULARY).map(str::to_owned);
    for (uri, is_required) in vocabularies {
        let is_known = name(uri).is_some_and(|name| KNOWN.contains(&&*name));
        if *is_required == Value::Bool(true) && !is_known {
            return Err(format!("the dialect requires the vocabulary {uri:?}, which is not known"));
        }
    }
    let has = |wanted: &str| vocabularies.keys().any(|uri| name(uri).as_deref() == Some(wanted));
    Ok(Dialect {
        applicator: has("applicator"),
        unevaluated: has("unevaluated"),
        validation: has("validation"),
    })
}

/// Replaces nodes that are only a `$ref` by what they lead to, which saves a level per reference.
fn skip_references(nodes: &mut [Node], root: &mut NodeId) {
    let target = |id: NodeId| match &*nodes[id.index()].keywords {
        [Keyword::Ref(target)] => Some(*target),
        _ => None,
    };
    let follow = |id: NodeId| {
        let mut found = id;
        for _ in 0..nodes.len() {
            let Some(next) = target(found) else { return found };
            found = next;
        }
        // References that only lead to each other.
        id
    };
    let ends: Vec<NodeId> = (0_u32..).take(nodes.len()).map(|index| follow(NodeId(index))).collect();
    *root = ends[root.index()];
    for keyword in nodes.iter_mut().flat_map(|node| &mut node.keywords) {
        keyword.visit_mut(&mut |node, _| *node = ends[node.index()]);
    }
}

/// Marks the nodes that can judge one value more than once: those that several keywords lead to, and those that judge the
/// same value as another node.
fn mark_shared(nodes: &mut [Node], root: NodeId, targets: &[NodeId]) {
    let mut edges = vec![0_usize; nodes.len()];
    let mut is_repeated = vec![false; nodes.len()];
    edges[root.index()] += 1;
    for id in targets {
        is_repeated[id.index()] = true;
    }
    for keyword in nodes.iter().flat_map(|node| &node.keywords) {
        // `unevaluatedItems` tests a second time which items `contains` matches.
        let is_contained = matches!(keyword, Keyword::Contains(_));
        keyword.visit(&mut |node, edge| {
            edges[node.index()] += 1;
            is_repeated[node.index()] |= edge == Edge::InPlace || is_contained;
        });
    }
    for (index, node) in nodes.iter_mut().enumerate() {
        node.is_shared = (edges[index] > 1 || is_repeated[index]) && !node.keywords.is_empty();
    }
}

fn prepare_choices(nodes: &mut [Node]) {
    let mut prepared: VecDeque<_> = nodes
        .iter()
        .flat_map(|node| &node.keywords)
        .filter_map(|keyword| match keyword {
            Keyword::AnyOf(choice) | Keyword::OneOf(choice) => Some(choice.prepare(nodes)),
            _ => None,
        })
        .collect();
    for keyword in nodes.iter_mut().flat_map(|node| &mut node.keywords) {
        if let Keyword::AnyOf(choice) | Keyword::OneOf(choice) = keyword {
            (choice.guards, choice.tag) = prepared.pop_front().unwrap_or_default();
        }
    }
}
