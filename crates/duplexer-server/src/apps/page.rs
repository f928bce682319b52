//! The HTML of a view: what it must be, and the bridge script inside it.

/// The page's half of the messages with its host.
const BRIDGE: &str = include_str!("bridge.js");

/// Checks that a text is a whole HTML document.
pub(super) fn check(html: &str) -> Result<(), String> {
    let text = html.trim_start_matches('\u{feff}').trim_start();
    if html.contains('\0') {
        return Err("its HTML contains a NUL character".to_owned());
    }
    if !begins_with(text, "<!doctype html") {
        return Err("its HTML does not begin with <!doctype html>".to_owned());
    }
    if find_tag(html, "<html").is_none() {
        return Err("its HTML has no <html> element".to_owned());
    }
    Ok(())
}

/// Returns the page with the bridge script, before every script of its own.
pub(super) fn with_bridge(html: &str) -> String {
    let at = find_tag(html, "<head").or_else(|| find_tag(html, "<html")).unwrap_or(0);
    let (before, after) = html.split_at(at);
    format!("{before}<script>\n{BRIDGE}</script>{after}")
}

/// Returns the position after a tag. Tags are compared without regard to case.
fn find_tag(html: &str, tag: &str) -> Option<usize> {
    let lower = html.to_ascii_lowercase();
    let (at, _) = lower.match_indices(tag).find(|(at, _)| {
        let next = lower.as_bytes().get(at + tag.len());
        next.is_some_and(|byte| *byte == b'>' || byte.is_ascii_whitespace())
    })?;
    lower.get(at..)?.find('>').map(|end| at + end + 1)
}

fn begins_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// APP-04: a page is a whole document.
    #[test]
    fn only_whole_documents_are_pages() {
        for good in ["<!doctype html><html></html>", "\u{feff}\n<!DOCTYPE html>\n<HTML lang=en>"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, reason) in [
            ("", "doctype"),
            ("<p>", "doctype"),
            ("<html></html>", "doctype"),
            ("<!doctype html><p>", "<html>"),
            ("<!doctype html><htmlx>", "<html>"),
            ("<!doctype html><html>\0", "NUL"),
        ] {
            assert!(check(bad).unwrap_err().contains(reason), "{bad}");
        }
    }

    #[test]
    fn the_bridge_comes_before_every_script() {
        let page = with_bridge("<!doctype html><html><HEAD lang=en><script>own()</script></HEAD></html>");
        assert!(page.starts_with("<!doctype html><html><HEAD lang=en><script>\n//"), "{page}");
        assert!(page.find("mcpApp").unwrap() < page.find("own()").unwrap());
        let bare = with_bridge("<!doctype html><html><script>own()</script></html>");
        assert!(bare.starts_with("<!doctype html><html><script>\n//"), "{bare}");
        // The script must not end early.
        assert!(!BRIDGE.contains("</script") && BRIDGE.len() < 6000, "{}", BRIDGE.len());
    }
}
