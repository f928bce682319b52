//! The files of the page, compiled in.

/// A file with its media type.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! files {
    ($($name:literal $media_type:ident;)*) => {
        &[$(File { name: $name, media_type: $media_type, text: include_str!(concat!("../page/", $name)) },)*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// The page itself.
pub(crate) const PAGE: &str = "index.html";

/// Files of the origin of the page.
const OF_PAGE: &[File] = files! {
    "index.html" HTML;
    "icon.svg" PICTURE;
    "style.css" STYLE;
    "panels.css" STYLE;
    "app.js" SCRIPT;
    "api.js" SCRIPT;
    "compare.js" SCRIPT;
    "connect.js" SCRIPT;
    "content.js" SCRIPT;
    "copy.js" SCRIPT;
    "detail.js" SCRIPT;
    "dialogs.js" SCRIPT;
    "dom.js" SCRIPT;
    "download.js" SCRIPT;
    "form.js" SCRIPT;
    "latency.js" SCRIPT;
    "list.js" SCRIPT;
    "logs.js" SCRIPT;
    "schema.js" SCRIPT;
    "sequence.js" SCRIPT;
    "state.js" SCRIPT;
    "tasks.js" SCRIPT;
    "tree.js" SCRIPT;
    "view.js" SCRIPT;
    "wire.js" SCRIPT;
};

/// Files of the second origin.
const OF_SANDBOX: &[File] = files! {
    "sandbox.html" HTML;
    "sandbox.css" STYLE;
    "sandbox.js" SCRIPT;
};

pub(crate) fn of_page(name: &str) -> Option<&'static File> {
    OF_PAGE.iter().find(|file| file.name == name)
}

pub(crate) fn of_sandbox(name: &str) -> Option<&'static File> {
    OF_SANDBOX.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 12: the page is below 200 kB.
    #[test]
    fn all_files_together_are_below_200_kb() {
        let size: usize = OF_PAGE.iter().chain(OF_SANDBOX).map(|file| file.text.len()).sum();
        assert!(size < 200_000, "{size} bytes");
    }

    #[test]
    fn no_file_names_another_host() {
        for file in OF_PAGE.iter().chain(OF_SANDBOX) {
            let hosts = file.text.match_indices("://").filter(|(at, _)| {
                let rest = &file.text[at + 3..];
                let known = ["www.w3.org/", "127.0.0.1", "${"];
                rest.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && !known.iter().any(|host| rest.starts_with(host))
            });
            assert_eq!(hosts.count(), 0, "{}", file.name);
        }
    }
}
