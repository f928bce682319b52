//! Checks results that request input: they must request something, and only what the client has declared.

use duplexer_types::capabilities::{ClientCapabilities, ElicitationCapability, SamplingCapability};
use duplexer_types::input::{InputRequest, InputRequiredResult};
use duplexer_types::json::JsonObject;
use duplexer_types::lifecycle::MissingCapabilityData;
use duplexer_types::version::{Era, ProtocolVersion};
use duplexer_types::wire::result_type;

use crate::kernel::connection::{ClientCapability, ClientProfile, Connection};
use crate::kernel::outcome::{Outcome, invalid_result};
use duplexer_core::error::McpError;

/// Checks the outcome of a handler with all middleware around it. Final results pass, and so does finished text, which
/// is the responsibility of its author. The kernel checks whether the method allows input requests at all.
pub(crate) fn check(
    outcome: &Outcome,
    version: ProtocolVersion,
    connection: &Connection,
) -> Result<(), McpError> {
    let may_ask = version.era() == Era::Envelope && !outcome.is_raw();
    if !may_ask || outcome.result_type() != result_type::INPUT_REQUIRED {
        return Ok(());
    }
    match outcome.downcast_ref::<InputRequiredResult>() {
        Some(result) => check_result(result, connection.client()),
        None => match outcome.read::<InputRequiredResult>() {
            Some(result) => check_result(&result, connection.client()),
            None => Err(invalid_result("it does not ask for input as one does")),
        },
    }
}

fn check_result(result: &InputRequiredResult, client: &ClientProfile) -> Result<(), McpError> {
    let requests = result.input_requests.as_ref();
    if result.request_state.is_none() && requests.is_none_or(JsonObject::is_empty) {
        return Err(invalid_result("it asks for nothing"));
    }
    let mut missing = Vec::new();
    for (_, request) in requests.into_iter().flat_map(JsonObject::iter) {
        let needed = ClientCapability::required_by(request)
            .ok_or_else(|| invalid_result("it asks for something unknown"))?;
        if !client.supports(&needed) && !missing.contains(&needed) {
            missing.push(needed);
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(first) => {
            let text = format!("Client did not declare the {} capability", name(first));
            Err(McpError::Rpc(MissingCapabilityData::new(together(&missing)).error(text)))
        }
    }
}

/// Fails with -32021 unless the client has declared the capability for this request.
pub(crate) fn require(request: &InputRequest, key: &str, client: &ClientProfile) -> Result<(), McpError> {
    let Some(needed) = ClientCapability::required_by(request) else {
        return Err(invalid_result("it asks for something unknown"));
    };
    if client.supports(&needed) {
        return Ok(());
    }
    let text = format!("Client did not declare the {} capability required by '{key}'", name(&needed));
    Err(McpError::Rpc(MissingCapabilityData::new(needed.as_capabilities()).error(text)))
}

fn name(requirement: &ClientCapability) -> &'static str {
    match requirement {
        ClientCapability::ElicitationForm => "form elicitation",
        ClientCapability::ElicitationUrl => "URL elicitation",
        ClientCapability::SamplingTools => "sampling.tools",
        ClientCapability::Sampling => "sampling",
        _ => "roots",
    }
}

/// Combines the missing capabilities into one declaration.
fn together(missing: &[ClientCapability]) -> ClientCapabilities {
    let mut all = ClientCapabilities::new();
    for requirement in missing {
        let one = requirement.as_capabilities();
        all.roots = all.roots.or(one.roots);
        if let Some(one) = one.sampling {
            let mut sampling = all.sampling.unwrap_or_else(SamplingCapability::new);
            sampling.tools = sampling.tools.or(one.tools);
            all.sampling = Some(sampling);
        }
        if let Some(one) = one.elicitation {
            let mut elicitation = all.elicitation.unwrap_or_else(ElicitationCapability::new);
            elicitation.form = elicitation.form.or(one.form);
            elicitation.url = elicitation.url.or(one.url);
            all.elicitation = Some(elicitation);
        }
    }
    all
}

#[cfg(test)]
mod tests;
