//! Variables in the values of a configuration file: `${NAME}`, `${NAME:-default}`, `${env:NAME}`.

/// Maximum length of an expanded value, in bytes.
const MAX_LENGTH: usize = 64 * 1024;

/// Replaces the variables of a text by the values of `lookup`. The values themselves are not expanded.
pub(super) fn expand(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, variable) = (&rest[..start], &rest[start + 2..]);
        let Some((variable, after)) = variable.split_once('}') else {
            return Err("`${` has no closing `}`".to_owned());
        };
        expanded.push_str(before);
        expanded.push_str(&value(variable, &lookup)?);
        if expanded.len() > MAX_LENGTH {
            return Err(format!("it is longer than {MAX_LENGTH} bytes after its variables are replaced"));
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn value(variable: &str, lookup: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, default) = match variable.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (variable, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    if name.starts_with("input:") {
        return Err(format!(
            "`${{{name}}}` asks for an input, which is not supported; use an environment variable"
        ));
    }
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(format!("`${{{name}}}` is not an environment variable"));
    }
    // As in a shell, an empty variable has the default.
    match (lookup(name).filter(|value| default.is_none() || !value.is_empty()), default) {
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!("the environment variable `{name}` is not set")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_once_and_faults_are_named() {
        let lookup = |name: &str| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${HOME}".to_owned()),
            "LONG" => Some("x".repeat(MAX_LENGTH)),
            _ => None,
        };
        let check = |text: &str, expected: Result<&str, &str>| {
            assert_eq!(expand(text, lookup), expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        };
        check("plain $HOME {x}", Ok("plain $HOME {x}"));
        check("${HOME}/a:${env:HOME}", Ok("/home/ada/a:/home/ada"));
        check("${NONE:-b}${EMPTY:-c}${HOME:-d}${NONE:-}", Ok("bc/home/ada"));
        check("[${EMPTY}]", Ok("[]"));
        check("${NESTED}", Ok("${HOME}"));
        check("${NONE}", Err("the environment variable `NONE` is not set"));
        check("a${HOME", Err("`${` has no closing `}`"));
        check("${a b}", Err("`${a b}` is not an environment variable"));
        check("${}", Err("`${}` is not an environment variable"));
        check(
            "${input:key}",
            Err("`${input:key}` asks for an input, which is not supported; use an environment variable"),
        );
        check("${LONG}${LONG}", Err("it is longer than 65536 bytes after its variables are replaced"));
    }
}
