//! The rules that `doctor` checks, one row each: id, severity, what holds, the page of the specification, and the remedy.
//!
//! A rule of another document than the specification links that one. `docs/doctor.md` lists the same rows.

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Worth knowing.
    Info,
    /// Some hosts or users will have trouble.
    Warning,
    /// The server breaks a rule, or cannot be used.
    Error,
}

impl Severity {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

use Severity::{Error, Info, Warning};

/// One rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) severity: Severity,
    /// What holds for a sound server.
    pub(crate) title: &'static str,
    /// Where the rule comes from.
    pub(crate) link: &'static str,
    /// What to change.
    pub(crate) remedy: &'static str,
}

macro_rules! rules {
    ($($name:ident $id:literal $severity:ident $title:literal $link:expr, $remedy:literal;)*) => {
        $(pub(crate) const $name: &Rule = &Rule { id: $id, severity: $severity, title: $title, link: $link, remedy: $remedy };)*
        /// All rules.
        #[cfg(test)]
        pub(crate) const RULES: &[&Rule] = &[$($name),*];
    };
}

/// Returns a page of the specification, in the newest revision that has it.
macro_rules! page {
    (envelope $page:literal) => {
        concat!("https://modelcontextprotocol.io/specification/2026-07-28", $page)
    };
    (handshake $page:literal) => {
        concat!("https://modelcontextprotocol.io/specification/2025-11-25", $page)
    };
}

rules! {
    // Reaching the server.
    REACHABLE "reachable" Error "the server answers"
        page!(envelope "/basic/transports"), "start the server, or correct the host, the port or the path of the program";
    ENDPOINT "endpoint" Error "there is an MCP endpoint at this URL"
        page!(envelope "/basic/transports/streamable-http"), "use the path that the server is mounted at; most are at /mcp";
    REDIRECT "redirect" Error "a request is answered where it was sent"
        page!(envelope "/basic/transports/streamable-http"), "configure the URL that the redirect names, or serve both: hosts drop the body or the token of a redirected request";
    TRAILING_SLASH "trailing-slash" Info "the URL works with and without a slash at its end"
        page!(envelope "/basic/transports/streamable-http"), "serve the endpoint at both paths: people write either";
    ERA "era" Error "the server speaks a revision of the protocol"
        page!(envelope "/basic/versioning"), "implement the handshake, the discovery of the newest revision, or both";
    HANDSHAKE_ERA "handshake-era" Warning "hosts of the revisions up to 2025-11-25 can connect"
        page!(handshake "/basic/lifecycle"), "answer the handshake too: most hosts begin with it";
    ENVELOPE_ERA "envelope-era" Info "hosts of the revision 2026-07-28 can connect without a handshake"
        page!(envelope "/basic/versioning"), "upgrade the server's library to one that knows 2026-07-28";
    NOT_CHECKED "not-checked" Info "everything could be checked"
        page!(envelope "/basic/authorization"), "give a token with --token or a header with --header, to check what is behind the login";
    LATENCY "latency" Info "a request that needs no work takes less than 25 ms"
        page!(envelope "/basic/transports"), "if the server is near: set TCP_NODELAY or send head and body of a response together, and measure with `duplexer bench`";

    // Who can reach it: web pages.
    REBINDING "rebinding" Error "a web page cannot reach a server on this machine"
        page!(handshake "/basic/transports#security-warning"), "refuse requests whose Host or Origin is not yours with 403: a page that rebinds its name can call every tool";
    HOST "host" Warning "the header Host is checked on this machine"
        page!(handshake "/basic/transports#security-warning"), "compare Host with the names that the server is reached by, and answer 403 otherwise";
    ORIGIN "origin" Warning "the header Origin is checked"
        page!(handshake "/basic/transports#security-warning"), "answer 403 to an Origin that is not allowed";
    SIMPLE_POST "simple-post" Error "a web page cannot send a request without the browser's consent"
        page!(handshake "/basic/transports#security-warning"), "answer 415 to a body that is not application/json: browsers send text/plain across origins without asking";
    MEDIA_TYPE "media-type" Warning "a body that is not application/json is refused"
        page!(envelope "/basic/transports/streamable-http"), "answer 415; compare type and subtype without case, and allow parameters";
    MEDIA_TYPE_PARAMETERS "media-type-parameters" Error "application/json with parameters is accepted"
        page!(envelope "/basic/transports/streamable-http"), "parse the media type instead of comparing the whole header: clients send `; charset=utf-8`";
    MEDIA_TYPE_CASE "media-type-case" Info "the media type is compared without case"
        "https://www.rfc-editor.org/rfc/rfc9110#section-8.3.1", "accept `Application/JSON` as application/json";
    CORS_CREDENTIALS "cors-credentials" Error "no foreign origin may send credentials"
        page!(handshake "/basic/transports#security-warning"), "do not send Access-Control-Allow-Credentials for origins that are not on a list";
    CORS_EXPOSED "cors-exposed" Warning "pages of allowed origins can read the session id"
        page!(handshake "/basic/transports#session-management"), "add Mcp-Session-Id to Access-Control-Expose-Headers";

    // Messages, in both eras.
    CONTENT_TYPE "content-type" Error "a response is application/json or text/event-stream"
        page!(envelope "/basic/transports/streamable-http"), "set the Content-Type of responses";
    RESPONSE_ID "response-id" Error "a response has the id of its request, with its type"
        page!(envelope "/basic"), "echo the id as it is: a text stays a text";
    JSONRPC "jsonrpc" Error "messages are JSON-RPC 2.0"
        page!(envelope "/basic"), "send `\"jsonrpc\": \"2.0\"`, and either a result or an error";
    UNKNOWN_METHOD "unknown-method" Error "an unknown method is answered with the error -32601"
        page!(envelope "/basic"), "answer -32601: clients probe for features with it";
    PARSE_ERROR "parse-error" Warning "malformed JSON is answered with an error"
        page!(envelope "/basic"), "answer -32700 with a status in the 400s, and serve the next request";
    SURVIVES_GARBAGE "survives-garbage" Error "malformed input does not end the server"
        page!(envelope "/basic"), "catch the failure of the parser where the message is read";
    NOTIFICATION_STATUS "notification-status" Error "a notification is answered with 202 and no body"
        page!(envelope "/basic/transports/streamable-http"), "answer 202 Accepted without a body";

    // The handshake era.
    INITIALIZE "handshake-result" Error "the handshake names revision, capabilities and server"
        page!(handshake "/basic/lifecycle#initialization"), "send protocolVersion, capabilities and serverInfo with name and version";
    NEGOTIATION "negotiation" Error "an unknown revision is answered with one that the server supports"
        page!(handshake "/basic/lifecycle#version-negotiation"), "answer the handshake with the newest supported revision instead of an error";
    PING "ping-answer" Error "a ping is answered with an empty result"
        page!(handshake "/basic/utilities/ping"), "answer with `{}`: hosts end connections that do not answer";
    SESSION_ID "session-id" Error "a session id has only visible ASCII characters"
        page!(handshake "/basic/transports#session-management"), "use a random id of letters and digits";
    SESSION_UNKNOWN "session-unknown" Error "a request of an unknown session is answered with 404"
        page!(handshake "/basic/transports#session-management"), "answer 404, so that clients open a new session";
    SESSION_REQUIRED "session-required" Warning "a request without the session id is answered with 400"
        page!(handshake "/basic/transports#session-management"), "answer 400 to a request without the session that the server had opened";
    SESSION_END "session-end" Info "a client can end its session"
        page!(handshake "/basic/transports#session-management"), "answer DELETE with 200 or 204, and 404 to later requests of the session";
    GET_STREAM "get-stream" Error "GET opens a stream or is answered with 405"
        page!(handshake "/basic/transports#listening-for-messages-from-the-server"), "answer 405 if there is no stream, so that clients go on without it";
    VERSION_HEADER "version-header" Warning "an invalid version header is answered with 400"
        page!(handshake "/basic/transports#protocol-version-header"), "answer 400 to a revision that the server does not support";

    // The envelope era.
    DISCOVER "discover" Error "the discovery names revisions and capabilities"
        page!(envelope "/server/discover"), "send supportedVersions, capabilities, ttlMs and cacheScope";
    RESULT_TYPE "result-type" Error "every result says its type"
        page!(envelope "/basic"), "add `\"resultType\": \"complete\"`";
    HEADER_MISMATCH "header-mismatch" Error "headers that contradict the body are refused"
        page!(envelope "/basic/transports/streamable-http"), "answer 400 with the error -32020 if Mcp-Method, Mcp-Name or MCP-Protocol-Version differ from the body";
    UNSUPPORTED_VERSION "unsupported-version" Error "an unknown revision is refused with the supported ones"
        page!(envelope "/basic/versioning"), "answer 400 with the error -32022, and the revisions in data.supported";
    META_REQUIRED "meta-required" Error "a request without its envelope is refused"
        page!(envelope "/basic#_meta"), "answer 400 with the error -32602 if the required keys of _meta are missing";
    UNKNOWN_METHOD_STATUS "unknown-method-status" Warning "an unknown method has the status 404"
        page!(envelope "/basic/transports/streamable-http"), "answer 404 together with the error -32601";

    // What it offers.
    CAPABILITIES "capabilities" Error "what is declared is served"
        page!(envelope "/server"), "serve the lists of the declared capabilities, or do not declare them";
    UNDECLARED "undeclared" Warning "what is served is declared"
        page!(envelope "/server"), "declare the capability: hosts do not ask for what is not declared";
    LIST_SHAPE "list-shape" Error "lists and their entries have the required members"
        page!(envelope "/server/utilities/pagination"), "send the array of the list, and a name in each entry (a URI for resources)";
    PAGES "pages" Error "a list ends"
        page!(envelope "/server/utilities/pagination"), "leave out nextCursor on the last page, and never repeat a cursor";
    TOOL_UNIQUE "tool-unique" Error "names of tools are unique"
        page!(handshake "/server/tools#tool-names"), "rename one of the tools: hosts call by name";
    TOOL_NAME "tool-name" Warning "names of tools have letters, digits, `_`, `-` and `.`"
        page!(handshake "/server/tools#tool-names"), "use 1 to 64 of these characters: several hosts refuse others, and longer names";
    DESCRIPTION "description" Info "every tool has a description"
        page!(envelope "/server/tools#tool"), "say what the tool does and when to use it: the model chooses by this text";
    HIDDEN_TEXT "hidden-text" Warning "names and descriptions have no invisible characters"
        page!(envelope "/server/tools#security-considerations"), "remove control and bidirectional characters: hosts refuse or hide them";
    SCHEMA_ROOT "schema-root" Error "the schema of arguments is an object of type object"
        page!(envelope "/server/tools#tool"), "use `{\"type\": \"object\"}` as the root, also for a tool without arguments";
    SCHEMA_VALID "schema-valid" Error "schemas are valid in their dialect"
        page!(handshake "/basic#json-schema-usage"), "correct the schema at the place that is named";
    SCHEMA_REFERENCE "schema-reference" Error "schemas refer only to themselves"
        page!(handshake "/basic#json-schema-usage"), "put the referenced schema under $defs: hosts do not fetch it";
    SCHEMA_UNION "schema-union" Warning "the root of a schema of arguments is no choice"
        page!(envelope "/server/tools#tool"), "move anyOf, oneOf or allOf into a property: several model interfaces refuse it at the root";
    SCHEMA_BOOLEAN "schema-boolean" Warning "properties have objects as schemas"
        page!(envelope "/server/tools#tool"), "write `{}` instead of `true`: several hosts take objects only";
    SCHEMA_ITEMS "schema-items" Warning "arrays say what they contain"
        page!(envelope "/server/tools#tool"), "add `items`: several model interfaces refuse arrays without it";
    SCHEMA_FORMAT "schema-format" Warning "formats are those of JSON Schema"
        "https://json-schema.org/draft/2020-12/json-schema-validation#section-7.3", "leave the format out, or express it by minimum, maximum and pattern: several model interfaces refuse formats that they do not know";
    SCHEMA_DEPTH "schema-depth" Warning "schemas are not deeply nested"
        page!(handshake "/basic#json-schema-usage"), "flatten the arguments: models fill deep structures badly, and some hosts limit them";
    SCHEMA_RECURSION "schema-recursion" Warning "schemas do not contain themselves"
        page!(handshake "/basic#json-schema-usage"), "limit the depth with separate definitions: several hosts inline references and never end";
    OUTPUT_ROOT "output-root" Warning "the schema of a result is of type object in the handshake era"
        page!(handshake "/server/tools#output-schema"), "wrap the result in an object, as the revisions before 2026-07-28 require";

    // Programs.
    STDOUT "stdout" Error "standard output has only messages"
        page!(envelope "/basic/transports/stdio"), "write logs to standard error, also those of libraries and of the program's start";
    EXIT_ON_EOF "exit-on-eof" Error "the program ends when its input ends"
        page!(handshake "/basic/lifecycle#shutdown"), "end the process when standard input is closed: hosts leave it behind otherwise";
    EXIT_STATUS "exit-status" Warning "the program ends with the status 0"
        page!(handshake "/basic/lifecycle#shutdown"), "treat the end of input as an ordinary end";
    SIGTERM "sigterm" Warning "the program ends on SIGTERM"
        page!(handshake "/basic/lifecycle#shutdown"), "handle SIGTERM by ending; hosts kill the process otherwise";

    // Login.
    CHALLENGE "challenge" Error "a refusal for want of a token names the scheme"
        page!(envelope "/basic/authorization/authorization-server-discovery"), "send `WWW-Authenticate: Bearer resource_metadata=\"...\"` with 401";
    METADATA_LINK "metadata-link" Error "the metadata that a challenge names is there"
        page!(envelope "/basic/authorization/authorization-server-discovery"), "serve the document at the URL of `resource_metadata`, or correct the URL";
    RESOURCE_METADATA "resource-metadata" Warning "the metadata of the resource can be found"
        page!(envelope "/basic/authorization/authorization-server-discovery"), "serve /.well-known/oauth-protected-resource, and name it in the challenge: hosts cannot log in without it";
    RESOURCE "resource" Error "the metadata is about this server"
        page!(envelope "/basic/authorization/authorization-server-discovery"), "set `resource` to the URL that clients use, without a slash at its end";
    AUTHORITY "authority" Error "the authorization server can be found"
        page!(envelope "/basic/authorization/authorization-server-discovery"), "list an issuer in authorization_servers, and serve its metadata under the well-known path";
    ISSUER "issuer" Error "the authorization server's metadata has the issuer that leads to it"
        page!(envelope "/basic/authorization/authorization-server-discovery"), "use one spelling of the issuer in both documents, also of the slash at its end";
    PKCE "pkce" Error "the authorization server supports PKCE with S256"
        page!(envelope "/basic/authorization/security-considerations"), "list S256 in code_challenge_methods_supported";
    REGISTRATION "registration" Warning "a client can register by itself"
        page!(envelope "/basic/authorization/client-registration"), "support client id metadata documents or dynamic registration, or give users a client id";
    PROTECTED "protected" Error "addresses of a login use TLS"
        page!(envelope "/basic/authorization/security-considerations"), "use https for everything that is not on this machine";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_unique_ids_and_links() {
        for (index, rule) in RULES.iter().enumerate() {
            assert!(RULES[..index].iter().all(|other| other.id != rule.id), "{}", rule.id);
            assert!(rule.link.starts_with("https://"), "{}", rule.id);
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(rule.id.chars().all(is_plain) && !rule.remedy.ends_with('.'), "{}", rule.id);
        }
    }

    /// The document has a row for every rule, and no other.
    #[test]
    fn the_document_lists_the_rules() {
        let document = include_str!("../../../../docs/doctor.md");
        let rows: Vec<&str> = document
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .filter_map(|line| line.split_once('`'))
            .filter(|(_, rest)| {
                ["| error", "| warning", "| info"].iter().any(|level| rest.trim_start().starts_with(level))
            })
            .map(|(id, _)| id)
            .collect();
        assert_eq!(rows, RULES.iter().map(|rule| rule.id).collect::<Vec<_>>());
        for rule in RULES {
            let row = format!("| `{}` | {} | {} |", rule.id, rule.severity.as_str(), rule.title);
            assert!(document.contains(&row), "{row}");
        }
    }
}
