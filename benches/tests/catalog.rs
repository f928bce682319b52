//! Many tools cost nothing in calls and in repeated lists.

use duplexer_bench::allocations::{self, Counting};
use duplexer_bench::catalog::{Ask, asked, server, tool};
use duplexer_bench::kernel::Kernel;
use duplexer_types::version::ProtocolVersion;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const REVISIONS: [ProtocolVersion; 2] = [ProtocolVersion::LATEST_HANDSHAKE, ProtocolVersion::LATEST_ENVELOPE];

/// Returns the response and its allocations.
fn answer(kernel: &Kernel) -> (String, usize) {
    let mut out = Vec::with_capacity(256 * 1024);
    let count = allocations::during(|| assert_eq!(kernel.answer(&mut out), Some(())));
    (String::from_utf8(out).unwrap(), count)
}

/// Returns the response to a repeated request.
fn again(kernel: &Kernel) -> (String, usize) {
    answer(kernel);
    answer(kernel)
}

#[test]
fn calling_one_of_a_thousand_tools_costs_the_same_as_one_of_ten() {
    for version in REVISIONS {
        let of = |tools: usize| again(&asked(&server(tools).unwrap(), version, Ask::Call).unwrap());
        let (few, many) = (of(10), of(1000));
        assert!(few.0.contains("hello") && few.1 > 0, "{}", few.0);
        assert_eq!(few, many, "{version}");
    }
}

/// A list that is rendered again allocates for each of its tools.
#[test]
fn a_list_is_rendered_once_per_revision() {
    for version in REVISIONS {
        let of = |tools: usize| asked(&server(tools).unwrap(), version, Ask::List).unwrap();
        let (one, fifty) = (of(1), of(50));
        let (first, rendering) = answer(&fifty);
        assert!(rendering > 50, "{rendering} allocations");
        let (second, sending) = answer(&fifty);
        assert_eq!(first, second);
        assert_eq!(sending, again(&one).1, "{version}: fifty tools cost as much as one");
    }
}

#[test]
fn a_change_is_rendered_once_more() {
    let server = server(50).unwrap();
    for version in REVISIONS {
        let list = asked(&server, version, Ask::List).unwrap();
        let (_, sending) = again(&list);
        let catalog: duplexer::server::Catalog<()> = list.running().catalog().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let change = |number: usize| {
            let changed = catalog.edit(|edit| {
                edit.add_tool(tool(number))?;
                edit.remove_tool(&format!("tool_{}", number - 1)).unwrap();
                Ok::<_, duplexer::server::CatalogError>(())
            });
            runtime.block_on(changed).unwrap();
        };
        change(50);
        let (changed, rendering) = answer(&list);
        assert!(changed.contains(r#""tool_50""#) && !changed.contains(r#""tool_49""#), "{version}");
        assert!(rendering > 50, "{rendering} allocations");
        assert_eq!(answer(&list), (changed, sending));
        // Restores the catalog for the next revision.
        runtime.block_on(catalog.edit(|edit| edit.remove_tool("tool_50"))).unwrap();
        runtime.block_on(catalog.edit(|edit| edit.add_tool(tool(49)))).unwrap();
    }
}
