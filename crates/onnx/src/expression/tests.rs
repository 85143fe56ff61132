//! Names that exporters write, and plain names.

use proptest::prelude::*;

use super::*;

/// The size of `name` where `a` is 7, `b` is 2, `past_sequence_length` is 128 and `seq-len` is 5.
fn size(name: &str) -> Option<Result<u64, String>> {
    let sizes = [("a", 7), ("b", 2), ("past_sequence_length", 128), ("seq-len", 5), ("höhe", 3)];
    let names = sizes.iter().map(|(name, _)| *name).chain([name]).collect();
    let size_of = |part: &str| sizes.iter().find(|(name, _)| *name == part).map(|(_, size)| *size);
    Expression::all(&names).remove(name).map(|expression| {
        expression.size(size_of).map_err(|problem| match problem {
            NoSize::Missing(parts) => format!("without {}", parts.join(", ")),
            NoSize::NotWhole(value) => value,
        })
    })
}

#[test]
fn names_that_exporters_write_have_the_value_of_their_arithmetic() {
    for (name, expected) in [
        ("past_sequence_length + 1", 129),
        ("past_sequence_length+1", 129),
        ("a + past_sequence_length", 135),
        ("past_sequence_length / 2", 64),
        ("past_sequence_length/2", 64),
        ("2*a", 14),
        ("a*b", 14),
        ("a - b", 5),
        ("a-b", 5),
        ("2*a - 3*b", 8),
        ("(a + b) * 3", 27),
        ("((a - 1)//2) + 1", 4),
        ("((past_sequence_length - 1)//2) + 1", 64),
        ("-1 + a", 6),
        ("b**2 + a", 11),
        ("2**3**b", 512),
        ("a % b", 1),
        ("-a % b", 1),
        ("Max(1, a)", 7),
        ("max(1, min(a, 3))", 3),
        ("floor(a/2)", 3),
        ("floor(-a/2) + 4", 0),
        ("ceiling(a/2)", 4),
        ("FloorDiv(a, b)", 3),
        ("CeilToInt(IntTrueDiv(a, b))", 4),
        ("0.5*past_sequence_length", 64),
        ("seq-len + 1", 6),
        ("2*höhe", 6),
        ("3*4", 12),
    ] {
        assert_eq!(size(name), Some(Ok(expected)), "{name}");
    }
}

#[test]
fn what_is_missing_or_no_size_is_said() {
    assert_eq!(size("c + a + d"), Some(Err("without c, d".to_owned())));
    assert_eq!(size("encoder_sequence_length / 2"), Some(Err("without encoder_sequence_length".to_owned())));
    assert_eq!(size("a / 2"), Some(Err("3.5".to_owned())));
    assert_eq!(size("b - a"), Some(Err("-5".to_owned())));
    assert_eq!(size("a // (b - 2)"), Some(Err("undefined".to_owned())));
    assert_eq!(size("a**a**a"), Some(Err("undefined".to_owned())));
}

#[test]
fn plain_names_are_left_alone() {
    for name in [
        "batch",
        "batch_size",
        "batch-size",
        "image-height",
        "dim-1",
        "N/A",
        "input/x",
        "s0",
        "unk__617",
        "?",
        "",
        "my dim",
        "image (height)",
        "C++",
        "a.b",
        "12",
        "(a)",
        "-",
        "(",
        "a b + 1",
        "f(a)",
        "f(a",
        "max()",
        "a +",
        "1.2.3 + a",
        "päckchen-größe",
    ] {
        assert_eq!(size(name), None, "{name}");
    }
    assert_eq!(size(&format!("{}a + 1{}", "(".repeat(40), ")".repeat(40))), None);
}

proptest! {
    #[test]
    fn no_name_panics(name in "[-+*/%() 0-9ab.,maxflorö]{0,40}", one in any::<u64>()) {
        let names = BTreeSet::from(["a", "b", name.as_str()]);
        if let Some(expression) = Expression::all(&names).get(name.as_str()) {
            let _any = expression.size(|_| Some(one));
        }
    }
}
