//! The dictionary at the start of a `.npy` file: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
//!
//! Input: its text. Output: what it says. Deliberately absent: all else that Python can write, which NumPy does not read
//! there either, and what an array of these elements takes.

/// What the dictionary says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// The type of the elements as Python writes it: a quoted text, or the list of a structure's fields.
    pub(super) described: &'a str,
    /// Whether the first index is the fastest.
    pub(super) is_fortran: bool,
    /// Sizes, outermost first; one that no integer holds is the largest.
    pub(super) shape: Vec<u64>,
}

/// The type of an element, such as `<f4`: three parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) is_big_endian: bool,
    pub(super) letter: char,
    /// Bytes, or characters of a text (`U`).
    pub(super) size: u64,
}

impl<'a> Header<'a> {
    /// Reads the dictionary.
    ///
    /// # Errors
    ///
    /// What is wrong, in words.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let entries = inner.and_then(entries).ok_or("its header is no dictionary")?;
        let [mut described, mut order, mut shape] = [None; 3];
        for entry in entries {
            let (key, value) = entry.split_once(':').ok_or("its header is no dictionary")?;
            let target = match unquoted(key.trim()) {
                Some("descr") => &mut described,
                Some("fortran_order") => &mut order,
                Some("shape") => &mut shape,
                _ => return Err("its header has another key than `descr`, `fortran_order` and `shape`".to_owned()),
            };
            if target.replace(value.trim()).is_some() {
                return Err(format!("its header has the key {} twice", key.trim()));
            }
        }
        let is_fortran = match order.ok_or("its header has no `fortran_order`")? {
            "True" => true,
            "False" => false,
            _ => return Err("`fortran_order` is neither True nor False".to_owned()),
        };
        let shape = sizes(shape.ok_or("its header has no `shape`")?).ok_or("its `shape` is no tuple of sizes")?;
        Ok(Header { described: described.ok_or("its header has no `descr`")?, is_fortran, shape })
    }

    /// The type of the elements; `None` of a structure, and of what is no type of one size.
    pub(super) fn descriptor(&self) -> Option<Descriptor> {
        let text = unquoted(self.described)?;
        let (order, rest) = text.split_at_checked(1)?;
        let (letter, digits) = rest.split_at_checked(1)?;
        // An older name of the same.
        let letter = if letter == "a" { 'S' } else { letter.chars().next()? };
        let size = number(digits)?;
        let has_order = letter == 'U' || letter != 'S' && size != 1;
        let is_big_endian = match order {
            "<" => false,
            ">" => true,
            "|" if !has_order => false,
            _ => return None,
        };
        Some(Descriptor { is_big_endian, letter, size })
    }
}

/// What stands between the commas of a dictionary, a tuple or a list: brackets within it and quoted texts stay whole. The
/// last comma may have nothing behind it. `None` if a bracket or a quote is not closed.
fn entries(text: &str) -> Option<Vec<&str>> {
    let (mut entries, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let (mut quote, mut is_escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.checked_sub(1)?,
            (None, ',') if depth == 0 => {
                entries.push(text[start..at].trim());
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        entries.push(last);
    }
    (depth == 0 && quote.is_none()).then_some(entries)
}

/// The text in quotes; none where it is escaped, as nothing in a header is that perfrun reads.
fn unquoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains([quote, '\\'])).then_some(inner)
}

/// A tuple: `(3, 4)`, `(3,)`, `()`. Python takes `(3)` for a number.
fn sizes(text: &str) -> Option<Vec<u64>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let entries = entries(inner)?;
    if entries.len() == 1 && !inner.contains(',') {
        return None;
    }
    // Python 2 wrote `3L`.
    entries.into_iter().map(|entry| number(entry.strip_suffix('L').unwrap_or(entry))).collect()
}

/// A whole number; the largest of u64 stands for all that are larger.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(text: &str) -> Result<Vec<u64>, String> {
        let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {text}}}");
        Header::parse(&text).map(|header| header.shape)
    }

    #[test]
    fn what_numpy_writes_is_read() {
        let written = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }              \n";
        let header = Header::parse(written).unwrap();
        assert_eq!((header.described, header.is_fortran, &header.shape[..]), ("'<f4'", false, &[3, 4][..]));
        let second = Header::parse(r#"{"shape":(7L,),"descr":"|S5","fortran_order":True}"#).unwrap();
        assert_eq!((second.described, second.is_fortran, &second.shape[..]), ("\"|S5\"", true, &[7][..]));
        let fields = "{'descr': [('a, }', '<f4', (2,)), ('b\\'', 'O')], 'fortran_order': False, 'shape': (1,)}";
        let header = Header::parse(fields).unwrap();
        assert_eq!(header.described, "[('a, }', '<f4', (2,)), ('b\\'', 'O')]");
        assert_eq!(header.descriptor(), None);
    }

    #[test]
    fn a_shape_is_a_tuple_of_sizes() {
        assert_eq!(shape("()"), Ok(vec![]));
        assert_eq!(shape("(3,)"), Ok(vec![3]));
        assert_eq!(shape("( 2 , 3 , )"), Ok(vec![2, 3]));
        assert_eq!(shape("(99999999999999999999, 1)"), Ok(vec![u64::MAX, 1]));
        for wrong in
            ["(3)", "(,)", "(2,,3)", "[3]", "(-1, 2)", "(2, x)", "(2.0, 1)", "3", "(1, (2, 3))", ")(", "'(3,)'"]
        {
            assert!(shape(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (text, problem) in [
            ("", "is no dictionary"),
            ("{'descr': '<f4'", "is no dictionary"),
            ("{'descr': '<f4, 'fortran_order': False, 'shape': ()}", "is no dictionary"),
            ("{'descr'}", "is no dictionary"),
            ("{'descr': '<f4', 'fortran_order': False}", "has no `shape`"),
            ("{'fortran_order': False, 'shape': ()}", "has no `descr`"),
            ("{'descr': '<f4', 'shape': ()}", "has no `fortran_order`"),
            ("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", "neither True nor False"),
            ("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': ()}", "the key 'descr' twice"),
            ("{'colour': 1}", "another key"),
            ("{descr: '<f4'}", "another key"),
        ] {
            let found = Header::parse(text).unwrap_err();
            assert!(found.contains(problem), "{text}: {found}");
        }
    }

    #[test]
    fn a_type_has_an_order_where_it_has_more_than_a_byte() {
        let type_of = |described| {
            let found = Header { described, is_fortran: false, shape: vec![] }.descriptor();
            found.map(|found| (found.is_big_endian, found.letter, found.size))
        };
        assert_eq!(type_of("'<f4'"), Some((false, 'f', 4)));
        assert_eq!(type_of("'>i8'"), Some((true, 'i', 8)));
        assert_eq!(type_of("'|b1'"), Some((false, 'b', 1)));
        assert_eq!(type_of("'<U12'"), Some((false, 'U', 12)));
        assert_eq!(type_of("'|a3'"), Some((false, 'S', 3)));
        for none in ["'|f4'", "'|U1'", "'=f4'", "'f4'", "'<f'", "'|O'", "'<M8[ns]'", "''", "'<é4'", "[]", "'<f4", "<f4"]
        {
            assert_eq!(type_of(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_comes_back(
            shape: Vec<u64>,
            is_fortran: bool,
            letter in "[a-zA-Z]",
            size: u16,
            is_big_endian: bool,
        ) {
            let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
            let (order, python) = (if is_big_endian { '>' } else { '<' }, if is_fortran { "True" } else { "False" });
            let text = format!("{{'descr': '{order}{letter}{size}', 'fortran_order': {python}, 'shape': ({sizes}), }}\n");
            let header = Header::parse(&text).unwrap();
            prop_assert_eq!((&header.shape, header.is_fortran), (&shape, is_fortran));
            let letter = if letter == "a" { 'S' } else { letter.chars().next().unwrap() };
            let expected = Descriptor { is_big_endian, letter, size: u64::from(size) };
            prop_assert_eq!(header.descriptor(), Some(expected));
        }

        #[test]
        fn no_text_makes_it_panic(text: String, noise in "[{}()\\[\\]'\",:\\\\ a-z0-9é]{0,40}") {
            let _any = Header::parse(&text).map(|header| header.descriptor());
            let noisy = format!("{{'descr': {noise}, 'fortran_order': False, 'shape': ({noise})}}");
            let _any = Header::parse(&noisy).map(|header| header.descriptor());
        }
    }
}
