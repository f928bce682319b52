//! Input requests inside a result, distinguished by their method.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{ForRevision, Shape, Wire};
use crate::input::InputRequest;
use crate::json::{Json, Occurrence, find_members, scan};
use crate::lifecycle::EmptyParams;
use crate::methods::Method;
use crate::model::read_from_json;

impl InputRequest {
    /// Returns the method that the request has outside of a result.
    pub const fn method(&self) -> Option<Method> {
        match self {
            Self::Elicit(_) => Some(Method::ElicitationCreate),
            Self::CreateMessage(_) => Some(Method::SamplingCreateMessage),
            Self::ListRoots => Some(Method::RootsList),
            Self::Other(_) => None,
        }
    }
}

impl Wire for InputRequest {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Elicit(params) => request(Method::ElicitationCreate, params, shape, serializer),
            Self::CreateMessage(params) => request(Method::SamplingCreateMessage, params, shape, serializer),
            Self::ListRoots => request(Method::RootsList, &EmptyParams::new(), shape, serializer),
            Self::Other(json) => json.write(shape, serializer),
        }
    }
}

fn request<P: Wire, S: Serializer>(
    method: Method,
    params: &P,
    shape: Shape,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("method", method.name())?;
    map.serialize_entry("params", &ForRevision(params, shape))?;
    map.end()
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

impl InputRequest {
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        let [name, params] = find_members(json.as_str(), ["method", "params"])?.map(Occurrence::one);
        let method = name.and_then(scan::string).as_deref().and_then(Method::parse);
        let params = params.unwrap_or("{}");
        match method {
            Some(Method::ElicitationCreate) => serde_json::from_str(params).map(Self::Elicit),
            Some(Method::SamplingCreateMessage) => serde_json::from_str(params).map(Self::CreateMessage),
            Some(Method::RootsList) => Ok(Self::ListRoots),
            _ => Ok(Self::Other(json.clone())),
        }
    }
}

read_from_json!(object InputRequest);
