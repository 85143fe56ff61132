//! Numbers that a command of a specification's author prints as JSON.
//!
//! Input: what it printed. Output: the values of the metrics that were asked for. Deliberately absent: what they mean.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// An object may begin at any brace; so many braces are tried, from the end.
const MOST_TRIED: usize = 1000;

/// What the last JSON object says that has any of these names: one number, or one for each item; or what stands there
/// instead, in words.
pub fn numbers<'a>(printed: &str, wanted: &[&'a str]) -> BTreeMap<&'a str, Result<Vec<f64>, String>> {
    let text = with_quoted_words(printed);
    let starts = text.rmatch_indices('{').map(|(at, _)| at).take(MOST_TRIED);
    let mut objects = starts.filter_map(|at| {
        let mut objects = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Map<String, Value>>();
        objects.next()?.ok()
    });
    let read = |object: Map<String, Value>| {
        let values_of = |name: &&'a str| Some((*name, values(name, object.get(*name)?)));
        Some(wanted.iter().filter_map(values_of).collect::<BTreeMap<_, _>>()).filter(|found| !found.is_empty())
    };
    objects.find_map(read).unwrap_or_default()
}

/// Python prints numbers that JSON does not have. As texts they do not make the whole object unreadable.
fn with_quoted_words(printed: &str) -> String {
    let mut text = printed.to_owned();
    for word in ["-Infinity", "Infinity", "NaN"].into_iter().filter(|word| printed.contains(word)) {
        for before in [": ", ":", "[", ", ", ","] {
            text = text.replace(&format!("{before}{word}"), &format!("{before}\"{word}\""));
        }
    }
    text
}

fn values(name: &str, found: &Value) -> Result<Vec<f64>, String> {
    let number = |value: &Value| value.as_f64().filter(|number| number.is_finite());
    let all = match found {
        Value::Array(items) => items.iter().map(number).collect(),
        one => number(one).map(|number| vec![number]),
    };
    let text: String = found.to_string().chars().take(60).collect();
    all.filter(|values: &Vec<f64>| !values.is_empty()).ok_or_else(|| format!("`{name}` is {text}, which is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(printed: &str) -> BTreeMap<&'static str, Result<Vec<f64>, String>> {
        numbers(printed, &["map50", "iou"])
    }

    #[test]
    fn the_last_object_with_a_wanted_name_is_what_was_meant() {
        let only = |name: &'static str, values: &[f64]| BTreeMap::from([(name, Ok(values.to_vec()))]);
        assert_eq!(found("{\"map50\": 0.41}\n"), only("map50", &[0.41]));
        assert_eq!(
            found("loading\n{\"map50\": 1}\nresult: {\"map50\": 2, \"model\": {\"x\": 1}} ok\n{\"other\": 3}\n{"),
            only("map50", &[2.0])
        );
        assert_eq!(found("done\n{\n  \"iou\": [0.5, 1]\n}\n"), only("iou", &[0.5, 1.0]));
        for nothing in ["", "0.41", "{}", "map50: 1", &"{".repeat(100_000)] {
            assert_eq!(found(nothing), BTreeMap::new(), "{nothing}");
        }
    }

    #[test]
    fn what_is_no_number_is_told_and_spoils_no_other() {
        for wrong in
            ["NaN", "-Infinity", "\"0.41\"", "null", "true", "[1, null]", "[NaN, 1]", "[1, -Infinity]", "[]", "{}"]
        {
            let found = found(&format!("{{\"map50\": {wrong}, \"iou\": 1}}"));
            assert_eq!(found["iou"], Ok(vec![1.0]), "{wrong}");
            let said = found["map50"].clone().expect_err("no number");
            assert!(said.starts_with("`map50` is ") && said.ends_with(", which is no number"), "{said}");
        }
    }
}
