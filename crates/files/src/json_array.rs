//! The items of an array in a file of JSON, one after the other: a profiler's trace may be hundreds of megabytes.
//!
//! Not generic, so that it is compiled in this package, which is optimised in debug builds too.

use std::fmt;
use std::io::{BufReader, Read};

use serde::Deserializer;
use serde::de::{SeqAccess, Visitor};
use serde_json::Value;

/// Hands over each item as it is read.
///
/// # Errors
///
/// A file that cannot be read, and what is no array of JSON; the items before it have been handed over.
pub fn each_item(file: &mut dyn Read, take: &mut dyn FnMut(Value)) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(file));
    json.deserialize_seq(Each(take))?;
    json.end()
}

struct Each<'a>(&'a mut dyn FnMut(Value));

impl<'de> Visitor<'de> for Each<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            (self.0)(item);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_order_until_the_text_is_wrong() {
        for (text, items, is_whole) in
            [("[1, [2], {}]\n", 3, true), ("[]", 0, true), ("[1, 2", 2, false), ("[1] 2", 1, false), ("{}", 0, false)]
        {
            let mut found = 0;
            let read = each_item(&mut text.as_bytes(), &mut |_| found += 1);
            assert_eq!((found, read.is_ok()), (items, is_whole), "{text}");
        }
    }
}
