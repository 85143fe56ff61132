//! Names of dimensions that are arithmetic on the sizes of other dimensions: `past_sequence_length + 1`,
//! `((s0 - 1)//2) + 1`.
//!
//! Input: a name in a file, and the names of the model's other dimensions. Output: an [`Expression`] that gives the size
//! from theirs, in exact fractions. Deliberately absent: which sizes there are (`resolve`).
//!
//! Exporters write sums, differences, products, quotients, `//`, `%`, `**`, parentheses, and the functions that Python
//! and SymPy print. A hyphen or a slash may as well be part of a plain name (`batch-size`): where nothing else makes a
//! name arithmetic, it is arithmetic only on dimensions that the model has.

use std::collections::{BTreeMap, BTreeSet};

/// Longer names are not read as arithmetic.
const LONGEST: usize = 512;

/// Parentheses within parentheses.
const DEEPEST: usize = 32;

/// A name taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expression<'a> {
    root: Term<'a>,
}

/// Why an expression has no size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoSize {
    /// These parts have none.
    Missing(Vec<String>),
    /// The result is no whole number from 0 on; as text.
    NotWhole(String),
}

#[derive(Clone, Debug, PartialEq)]
enum Term<'a> {
    Number(Fraction),
    Name(&'a str),
    Apply(Function, Vec<Term<'a>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    DivideDown,
    DivideUp,
    Remainder,
    Power,
    Negate,
    Down,
    Up,
    Largest,
    Smallest,
}

impl<'a> Expression<'a> {
    /// The names among those of a model's dimensions that are arithmetic, with what they compute.
    pub(super) fn all(names: &BTreeSet<&'a str>) -> BTreeMap<&'a str, Self> {
        let is_plain = |name: &&str| Parser::parse(name, &[]).is_none_or(|found| !found.is_sure);
        let has_symbols = |name: &&str| name.chars().any(|character| !is_word(character));
        let atoms: Vec<&str> = names.iter().copied().filter(has_symbols).filter(is_plain).collect();
        let parsed = |name: &&'a str| {
            let found = Parser::parse(name, &atoms)?;
            let expression = Expression { root: found.root };
            let parts = expression.parts();
            let is_known = || parts.iter().all(|part| names.contains(part));
            // Numbers alone that are no size, as in `1/2`, are a name.
            let is_size = !parts.is_empty() || expression.size(|_| None).is_ok();
            (is_size && (found.is_sure || is_known())).then_some((*name, expression))
        };
        names.iter().filter_map(parsed).collect()
    }

    /// The dimensions that it is computed from.
    pub(super) fn parts(&self) -> BTreeSet<&'a str> {
        let mut parts = BTreeSet::new();
        self.root.each_name(&mut |name| {
            parts.insert(name);
        });
        parts
    }

    /// The size, from the sizes of its parts.
    ///
    /// # Errors
    ///
    /// Parts without a size, or a result that is none.
    pub(super) fn size(&self, size_of: impl Fn(&str) -> Option<u64>) -> Result<u64, NoSize> {
        let missing: Vec<String> =
            self.parts().into_iter().filter(|part| size_of(part).is_none()).map(str::to_owned).collect();
        if !missing.is_empty() {
            return Err(NoSize::Missing(missing));
        }
        match self.root.value(&size_of) {
            Some(Fraction { over, under: 1 }) if over >= 0 => {
                u64::try_from(over).map_err(|_| NoSize::NotWhole(over.to_string()))
            }
            Some(fraction) => Err(NoSize::NotWhole(fraction.to_string())),
            None => Err(NoSize::NotWhole("undefined".to_owned())),
        }
    }
}

impl<'a> Term<'a> {
    fn each_name(&self, visit: &mut dyn FnMut(&'a str)) {
        match self {
            Term::Number(_) => {}
            Term::Name(name) => visit(name),
            Term::Apply(_, terms) => terms.iter().for_each(|term| term.each_name(visit)),
        }
    }

    fn value(&self, size_of: &impl Fn(&str) -> Option<u64>) -> Option<Fraction> {
        match self {
            Term::Number(number) => Some(*number),
            Term::Name(name) => Some(Fraction::whole(i128::from(size_of(name)?))),
            Term::Apply(function, terms) => {
                let values = terms.iter().map(|term| term.value(size_of)).collect::<Option<Vec<Fraction>>>()?;
                function.apply(&values)
            }
        }
    }
}

impl Function {
    /// A function by the names that Python, SymPy and PyTorch's exporter give it.
    fn named(name: &str, arguments: usize) -> Option<Self> {
        match (name, arguments) {
            ("max" | "Max", 1..) => Some(Function::Largest),
            ("min" | "Min", 1..) => Some(Function::Smallest),
            ("floor" | "TruncToInt" | "int", 1) => Some(Function::Down),
            ("ceil" | "ceiling" | "CeilToInt", 1) => Some(Function::Up),
            ("FloorDiv", 2) => Some(Function::DivideDown),
            ("CeilDiv", 2) => Some(Function::DivideUp),
            ("CleanDiv" | "IntTrueDiv" | "FloatTrueDiv", 2) => Some(Function::Divide),
            ("Mod" | "PythonMod", 2) => Some(Function::Remainder),
            _ => None,
        }
    }

    fn apply(self, values: &[Fraction]) -> Option<Fraction> {
        match (self, values) {
            (Function::Largest, _) => values.iter().copied().reduce(|a, b| if a.is_below(b) { b } else { a }),
            (Function::Smallest, _) => values.iter().copied().reduce(|a, b| if b.is_below(a) { b } else { a }),
            (Function::Negate, [left]) => Fraction::of(left.over.checked_neg()?, left.under),
            (Function::Down, [left]) => Some(Fraction::whole(left.over.div_euclid(left.under))),
            (Function::Up, [left]) => left.up(),
            (Function::Add, [left, right]) => left.plus(*right),
            (Function::Subtract, [left, right]) => left.plus(Fraction::of(right.over.checked_neg()?, right.under)?),
            (Function::Multiply, [left, right]) => left.times(*right),
            (Function::Divide, [left, right]) => left.divided(*right),
            (Function::DivideDown, [left, right]) => Function::Down.apply(&[left.divided(*right)?]),
            (Function::DivideUp, [left, right]) => left.divided(*right)?.up(),
            (Function::Remainder, [left, right]) => {
                let times = Function::DivideDown.apply(&[*left, *right])?.times(*right)?;
                Function::Subtract.apply(&[*left, times])
            }
            (Function::Power, [left, right]) => {
                let exponent = u32::try_from(right.over).ok().filter(|_| right.under == 1)?;
                Fraction::of(left.over.checked_pow(exponent)?, left.under.checked_pow(exponent)?)
            }
            _ => None,
        }
    }
}

/// A fraction in lowest terms; `under` is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    fn whole(over: i128) -> Self {
        Fraction { over, under: 1 }
    }

    /// `None` for a division by zero, and beyond what an i128 holds.
    fn of(over: i128, under: i128) -> Option<Self> {
        let (mut a, mut b) = (over.checked_abs()?, under.checked_abs()?);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let sign = if under < 0 { -1 } else { 1 };
        (under != 0).then(|| Fraction { over: sign * over / a, under: sign * under / a })
    }

    fn plus(self, other: Self) -> Option<Self> {
        let over = self.over.checked_mul(other.under)?.checked_add(other.over.checked_mul(self.under)?)?;
        Fraction::of(over, self.under.checked_mul(other.under)?)
    }

    fn times(self, other: Self) -> Option<Self> {
        Fraction::of(self.over.checked_mul(other.over)?, self.under.checked_mul(other.under)?)
    }

    fn divided(self, other: Self) -> Option<Self> {
        Fraction::of(self.over.checked_mul(other.under)?, self.under.checked_mul(other.over)?)
    }

    fn up(self) -> Option<Self> {
        Some(Fraction::whole(self.over.checked_add(self.under - 1)?.div_euclid(self.under)))
    }

    /// Where the products are too large, the order does not matter: no such size is taken.
    fn is_below(self, other: Self) -> bool {
        let products = self.over.checked_mul(other.under).zip(other.over.checked_mul(self.under));
        products.is_some_and(|(left, right)| left < right)
    }
}

impl std::fmt::Display for Fraction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.under {
            1 => write!(f, "{}", self.over),
            under => write!(f, "{}", self.over as f64 / under as f64),
        }
    }
}

/// What a text was read as.
struct Parsed<'a> {
    root: Term<'a>,
    /// Whether it cannot be a plain name.
    is_sure: bool,
}

struct Parser<'a, 't> {
    text: &'a str,
    at: usize,
    /// Names of other dimensions; each is one operand, even if it contains operators.
    atoms: &'t [&'t str],
    depth: usize,
    has_operator: bool,
    is_sure: bool,
}

impl<'a, 't> Parser<'a, 't> {
    /// `None` where it is not arithmetic, or has no operator.
    fn parse(text: &'a str, atoms: &'t [&'t str]) -> Option<Parsed<'a>> {
        if text.len() > LONGEST {
            return None;
        }
        let mut parser = Parser { text, at: 0, atoms, depth: 0, has_operator: false, is_sure: false };
        let root = parser.sum()?;
        parser.skip_spaces();
        (parser.at == text.len() && parser.has_operator).then_some(Parsed { root, is_sure: parser.is_sure })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes one of the symbols, the first that fits.
    fn take(&mut self, symbols: &[&'static str]) -> Option<&'static str> {
        self.skip_spaces();
        let symbol = symbols.iter().copied().find(|symbol| self.rest().starts_with(symbol))?;
        let is_apart = self.text[..self.at].ends_with(' ') && self.rest()[symbol.len()..].starts_with(' ');
        let is_halved = symbol == "/" && self.rest()[1..].starts_with(|next: char| next.is_ascii_digit());
        self.at += symbol.len();
        self.has_operator |= !matches!(symbol, "(" | ")" | ",");
        self.is_sure |= is_apart || is_halved || !matches!(symbol, "-" | "/" | ")" | ",");
        Some(symbol)
    }

    fn sum(&mut self) -> Option<Term<'a>> {
        let mut term = self.product()?;
        while let Some(symbol) = self.take(&["+", "-"]) {
            let function = if symbol == "+" { Function::Add } else { Function::Subtract };
            term = Term::Apply(function, vec![term, self.product()?]);
        }
        Some(term)
    }

    fn product(&mut self) -> Option<Term<'a>> {
        let mut term = self.signed()?;
        while let Some(symbol) = self.take(&["//", "*", "/", "%"]) {
            let function = match symbol {
                "//" => Function::DivideDown,
                "*" => Function::Multiply,
                "/" => Function::Divide,
                _ => Function::Remainder,
            };
            term = Term::Apply(function, vec![term, self.signed()?]);
        }
        Some(term)
    }

    fn signed(&mut self) -> Option<Term<'a>> {
        if self.take(&["-"]).is_some() {
            let term = self.nested(Self::signed)?;
            return Some(Term::Apply(Function::Negate, vec![term]));
        }
        let base = self.atom()?;
        match self.take(&["**"]) {
            Some(_) => Some(Term::Apply(Function::Power, vec![base, self.nested(Self::signed)?])),
            None => Some(base),
        }
    }

    fn nested(&mut self, inner: impl FnOnce(&mut Self) -> Option<Term<'a>>) -> Option<Term<'a>> {
        self.depth += 1;
        let term = if self.depth > DEEPEST { None } else { inner(self) };
        self.depth -= 1;
        term
    }

    fn atom(&mut self) -> Option<Term<'a>> {
        if let Some(name) = self.known() {
            return Some(Term::Name(name));
        }
        if self.take(&["("]).is_some() {
            let term = self.nested(Self::sum)?;
            self.take(&[")"])?;
            return Some(term);
        }
        let length = self.rest().find(|c: char| !is_word(c)).unwrap_or(self.rest().len());
        let word = &self.rest()[..length];
        self.at += length;
        match word.chars().next()? {
            '0'..='9' => number(word).map(Term::Number),
            '.' => None,
            _ if self.rest().starts_with('(') => self.call(word),
            _ => Some(Term::Name(word)),
        }
    }

    /// The longest of the model's other dimensions that stands here as a whole word.
    fn known(&mut self) -> Option<&'a str> {
        self.skip_spaces();
        let rest = self.rest();
        let is_here =
            |atom: &&&str| **atom != self.text && rest.starts_with(**atom) && !rest[atom.len()..].starts_with(is_word);
        let length = self.atoms.iter().filter(is_here).map(|atom| atom.len()).max().filter(|length| *length > 0)?;
        self.at += length;
        Some(&rest[..length])
    }

    fn call(&mut self, word: &str) -> Option<Term<'a>> {
        self.take(&["("])?;
        let mut arguments = vec![self.nested(Self::sum)?];
        while self.take(&[","]).is_some() {
            arguments.push(self.nested(Self::sum)?);
        }
        self.take(&[")"])?;
        self.has_operator = true;
        let function = Function::named(word, arguments.len())?;
        Some(Term::Apply(function, arguments))
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '.' | ':' | '#')
}

/// `12`, `0.5`.
fn number(word: &str) -> Option<Fraction> {
    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
    let under = 10_i128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let digits = format!("{whole}{part}");
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    Fraction::of(digits.parse().ok().filter(|_| is_number)?, under)
}

#[cfg(test)]
mod tests;
