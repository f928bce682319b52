//! Tokens from a file, for `bench-server http PORT --static-tokens FILE`.
//!
//! A line has a token, its subject, its audience (the URL of the server), its scopes and its expiry in seconds since
//! 1970, separated by tabs, commas or blanks. Several scopes are separated by another of these, or by `+`. `-` means no
//! scope, or no expiry. Empty lines and lines that begin with `#` are ignored.

use std::time::{Duration, UNIX_EPOCH};

use duplexer_auth::StaticToken;

/// Reads a file. Fails with the number of the first malformed line.
pub fn read(text: &str) -> Result<Vec<StaticToken>, String> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| token(line).map_err(|reason| format!("line {at}: {reason}"))).collect()
}

fn token(line: &str) -> Result<StaticToken, String> {
    let fields: Vec<&str> = if line.contains('\t') {
        line.split('\t').map(str::trim).collect()
    } else if line.split(',').count() == 5 {
        line.split(',').map(str::trim).collect()
    } else {
        line.split_whitespace().collect()
    };
    let [token, subject, audience, scopes, expiry] = fields[..] else {
        return Err(format!("{} fields instead of 5", fields.len()));
    };
    let scopes = scopes.split([' ', ',', '+']).filter(|scope| !scope.is_empty() && *scope != "-");
    let known = StaticToken::new(token).client_id(subject).audience(audience).scopes(scopes);
    if expiry == "-" || expiry.is_empty() {
        return Ok(known);
    }
    let seconds: u64 = expiry.parse().map_err(|_| format!("'{expiry}' is not a time"))?;
    let end = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    end.map(|end| known.expires_at(end)).ok_or_else(|| format!("'{expiry}' is too far away"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_token_however_it_is_separated() {
        let text = "# accepted tokens\n\na ada http://h/mcp read,write 4102444800\nb\tbob\thttp://h/mcp\tread write\t-\n\
            c,eve,http://h/mcp,-,1\n";
        let shown = format!("{:?}", read(text).unwrap());
        for part in ["\"ada\"", "[\"read\", \"write\"]", "\"bob\"", "\"eve\"", "scopes: []", "4102444800"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert_eq!(read("a b c").unwrap_err(), "line 1: 3 fields instead of 5");
        assert_eq!(read("\na b c d soon").unwrap_err(), "line 2: 'soon' is not a time");
    }
}
