//! Limits in the words of sentences.

/// `0.5 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// `a tenth`, `half`; else in percent.
pub fn part(share: f64) -> String {
    match share {
        0.1 => "a tenth".to_owned(),
        0.5 => "half".to_owned(),
        other => percent(other),
    }
}

/// `five`; above ten in digits.
pub fn spelt(number: usize) -> String {
    const WORDS: [&str; 11] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    WORDS.get(number).map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

/// With a capital letter.
pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_short_in_sentences() {
        assert_eq!([0.005, 0.07, 1.1 - 1.0].map(percent), ["0.5 %", "7 %", "10 %"]);
        assert_eq!([0.1, 0.5, 0.25].map(part), ["a tenth", "half", "25 %"]);
        assert_eq!([5, 10, 11].map(spelt), ["five", "ten", "11"]);
        assert_eq!(capital("grave"), "Grave");
    }
}
