//! Whether what is printed as JSON is as `docs/schema.json` says.
#![allow(clippy::unwrap_used)]

use serde_json::Value;

/// Panics where it is not.
#[allow(dead_code)] // by those who have one
pub fn check_report(report: &Value) {
    check_as("report", report);
}

/// The same of what the command of `cachetopd --then` gets.
#[allow(dead_code)] // by those who have one
pub fn check_moment(moment: &Value) {
    check_as("moment", moment);
}

/// The same of an object that has a name of its own in the schema. The keys that are described, and which it does not have.
#[allow(dead_code)] // by those who have one
pub fn check_as(name: &str, value: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(include_str!("../../docs/schema.json")).unwrap();
    let own = &schema["$defs"][name];
    assert!(own.is_object(), "{name} is not published");
    check(&schema, own, value, name);
    let keys = own["properties"].as_object().unwrap().keys();
    keys.filter(|key| value.get(key.as_str()).is_none()).cloned().collect()
}

/// What of JSON Schema the published one uses: types, constants, properties, required keys, items.
fn check(root: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#')).unwrap();
        return check(root, target, value, at);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_u64() || n.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed = |t: &Value| t == kind || (t == "number" && kind == "integer");
    let types = &schema["type"];
    assert!(
        allowed(types) || types.as_array().is_some_and(|t| t.iter().any(allowed)),
        "{at}: {kind}, not {types}"
    );
    if let Some(all) = schema["enum"].as_array() {
        assert!(all.contains(value), "{at}: {value}");
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(value, constant, "{at}");
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        check(root, &schema["items"], item, &format!("{at}[{i}]"));
    }
    let Some(object) = value.as_object() else { return };
    for key in schema["required"].as_array().into_iter().flatten() {
        assert!(object.contains_key(key.as_str().unwrap()), "{at} has no {key}");
    }
    for (key, value) in object {
        let at = format!("{at}.{key}");
        match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(schema), _) => check(root, schema, value, &at),
            (None, Value::Bool(false)) => panic!("{at} is not published"),
            (None, Value::Null) => {}
            (None, schema) => check(root, schema, value, &at),
        }
    }
}
