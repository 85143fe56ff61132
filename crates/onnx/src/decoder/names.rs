//! What inputs and outputs of decoders are called by those who export them.
//!
//! Input: a name. Output: the part that a tensor of that name plays. Deliberately absent: shapes, and which input belongs
//! to which output.
//!
//! Seen: transformers and optimum (`past_key_values.0.key`, `past_key_values.0.encoder.value`), onnxruntime-genai, the
//! scripts of ONNX Runtime (`past_key_self_0`, `past_0`), mobius (`key_cache.0`, `updated_key_cache.0`), transformers.js
//! (`num_logits_to_keep`). Patterns of `genai_config.json` (`past_key_values.%d.key`) come before all of these.

use super::Role;

/// Which cache a tensor is of: what of it, of which layer, and whether of an encoder's states.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CacheName {
    layer: u64,
    is_cross: bool,
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Key,
    Value,
    /// In one tensor.
    Both,
}

impl CacheName {
    pub(super) fn layer(&self) -> u64 {
        self.layer
    }

    pub(super) fn is_cross(&self) -> bool {
        self.is_cross
    }

    /// What a cache is called that goes into a model, or comes out of it.
    ///
    /// Patterns stand behind their keys of `genai_config.json`.
    pub(super) fn of<'a>(name: &str, mut patterns: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        if let Some((key, layer)) = patterns.find_map(|(key, pattern)| Some((key, numbered(name, pattern)?))) {
            let part = match () {
                () if key.ends_with("key_names") => Part::Key,
                () if key.ends_with("value_names") => Part::Value,
                () => Part::Both,
            };
            return Some(CacheName { layer, is_cross: key.starts_with("cross_"), part });
        }
        let words = words(name);
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        if !has(&["past", "present", "cache", "kv"]) {
            return None;
        }
        let layer = words.iter().rev().find_map(|word| word.parse().ok())?;
        // The `key_values` of a name are both; what comes last is the part.
        let part = words.iter().rev().find_map(|word| match word.as_str() {
            "key" | "k" => Some(Part::Key),
            "value" | "v" => Some(Part::Value),
            "values" | "kv" => Some(Part::Both),
            _ => None,
        });
        let is_cross = has(&["encoder", "cross"]);
        Some(CacheName { layer, is_cross, part: part.unwrap_or(Part::Both) })
    }
}

/// The number in place of `%d`.
pub(super) fn numbered(name: &str, pattern: &str) -> Option<u64> {
    let (before, after) = pattern.split_once("%d")?;
    name.strip_prefix(before)?.strip_suffix(after)?.parse().ok()
}

/// The part of an input that is no cache.
pub(super) fn role_of(name: &str) -> Option<Role> {
    let words = words(name);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let is_all = |wanted: &[&str]| wanted.iter().all(|word| has(word));
    let is_any = |wanted: &[&str]| wanted.iter().any(|word| has(word));
    Some(match () {
        () if is_any(&["write"]) && is_any(&["indices", "index"]) => Role::WriteIndex,
        () if is_all(&["use", "cache"]) => Role::UsesCache,
        () if is_all(&["nonpad", "seqlen"]) => Role::Length,
        () if is_any(&["seqlens"]) => Role::LastPosition,
        () if is_all(&["total", "sequence", "length"]) || is_all(&["total", "seq", "len"]) => Role::Length,
        () if has("logits") && has("keep") => Role::LogitsKept,
        () if is_all(&["token", "type"]) => Role::Segments,
        () if has("encoder") && has("mask") => Role::EncoderMask,
        () if has("encoder") && is_any(&["hidden", "states", "outputs", "output"]) => Role::EncoderStates,
        () if has("mask") => Role::Mask,
        () if is_any(&["position", "positions"]) => Role::Positions,
        () if has("ids") || has("tokens") => Role::Ids,
        () => return None,
    })
}

/// The words of a name in small letters; numbers are words of their own.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for character in name.chars() {
        let is_word = character.is_ascii_alphanumeric();
        let begins = !last.is_ascii_alphanumeric()
            || last.is_ascii_digit() != character.is_ascii_digit()
            || (last.is_ascii_lowercase() && character.is_ascii_uppercase());
        if is_word && begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| is_word) {
            word.push(character.to_ascii_lowercase());
        }
        last = character;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str) -> Option<(u64, bool, Part)> {
        CacheName::of(name, std::iter::empty()).map(|name| (name.layer, name.is_cross, name.part))
    }

    #[test]
    fn caches_are_told_by_their_names() {
        assert_eq!(cache("past_key_values.3.key"), Some((3, false, Part::Key)));
        assert_eq!(cache("present.11.value"), Some((11, false, Part::Value)));
        assert_eq!(cache("past_key_values.0.encoder.key"), Some((0, true, Part::Key)));
        assert_eq!(cache("past_key_self_2"), Some((2, false, Part::Key)));
        assert_eq!(cache("present_value_cross_2"), Some((2, true, Part::Value)));
        assert_eq!(cache("updated_key_cache.1"), Some((1, false, Part::Key)));
        assert_eq!(cache("past_0"), Some((0, false, Part::Both)));
        assert_eq!(cache("v_cache_7"), Some((7, false, Part::Value)));
        assert_eq!(cache("pastKeyValues.0.value"), Some((0, false, Part::Value)));
        assert_eq!(cache("input_ids"), None);
        assert_eq!(cache("use_cache_branch"), None);
    }

    #[test]
    fn patterns_of_a_configuration_come_first() {
        let patterns = [("past_key_names", "mem_k%d"), ("cross_past_value_names", "mem_v%d"), ("past_names", "m.%d")];
        let found = |name: &str| CacheName::of(name, patterns.into_iter());
        let part = |name: &str| found(name).map(|name| (name.layer, name.is_cross, name.part));
        assert_eq!(part("mem_k3"), Some((3, false, Part::Key)));
        assert_eq!(part("mem_v12"), Some((12, true, Part::Value)));
        assert_eq!(part("m.0"), Some((0, false, Part::Both)));
        assert_eq!(found("mem_k"), None);
    }

    #[test]
    fn other_inputs_are_told_by_their_names() {
        let roles = [
            ("input_ids", Role::Ids),
            ("decoder_input_ids", Role::Ids),
            ("attention_mask", Role::Mask),
            ("encoder_attention_mask", Role::EncoderMask),
            ("position_ids", Role::Positions),
            ("cache_position", Role::Positions),
            ("use_cache_branch", Role::UsesCache),
            ("encoder_hidden_states", Role::EncoderStates),
            ("seqlens_k", Role::LastPosition),
            ("total_sequence_length", Role::Length),
            ("nonpad_kv_seqlen", Role::Length),
            ("write_indices", Role::WriteIndex),
            ("num_logits_to_keep", Role::LogitsKept),
            ("token_type_ids", Role::Segments),
        ];
        for (name, role) in roles {
            assert_eq!(role_of(name), Some(role), "{name}");
        }
        assert_eq!(role_of("pixel_values"), None);
    }
}
