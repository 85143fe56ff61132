//! What is shown, and how: the options of every command.

use std::ffi::OsString;

use clap::{ArgAction, Args, ValueEnum};

/// Options that every command has.
#[derive(Clone, Debug, Default, Args)]
pub struct ScreenArgs {
    /// Log each step; `-vv`: messages of workers too.
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Show only results, warnings and errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Show no progress.
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Colour: auto, always or never.
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto", hide_possible_values = true)]
    pub color: Color,
    /// Print help.
    #[arg(short, long, action = ArgAction::HelpShort, global = true)]
    help: Option<bool>,
}

/// When there is colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Also in pipes and files.
    Always,
    /// Nowhere.
    Never,
}

/// The flags of every command; `--color` has a value.
const FLAGS: [&str; 6] = ["-v", "-vv", "--verbose", "-q", "--quiet", "--no-progress"];
const COLOR: &str = "--color";

/// The first word that is no option of every command.
pub(super) fn first_of_command(words: &[OsString]) -> Option<&OsString> {
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let is_flag = FLAGS.iter().any(|flag| word == flag);
        let has_value =
            word.to_str().is_some_and(|text| text.strip_prefix(COLOR).is_some_and(|it| it.starts_with('=')));
        if word == COLOR {
            // Its value.
            rest.next();
        } else if !is_flag && !has_value {
            return Some(word);
        }
    }
    None
}

/// When the words want colour, help and mistakes included.
pub fn color(words: &[OsString]) -> Color {
    let text = |word: &OsString| word.to_str().map(str::to_owned);
    let before_command: Vec<String> = words.iter().take_while(|word| *word != "--").filter_map(text).collect();
    let after = before_command.windows(2).filter(|pair| pair[0] == COLOR).map(|pair| pair[1].as_str());
    let joined = before_command.iter().filter_map(|word| word.strip_prefix(COLOR)?.strip_prefix('='));
    after.chain(joined).filter_map(|when| Color::from_str(when, false).ok()).next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn options_of_every_command_may_stand_before_it() {
        let first = |text: &str| first_of_command(&words(text)).and_then(|word| word.to_str().map(str::to_owned));
        for before in ["-q", "--no-progress", "-vv", "--color never", "--color=never -q"] {
            assert_eq!(first(&format!("perfrun {before} x.yaml")).as_deref(), Some("x.yaml"), "{before}");
        }
        assert_eq!(first("perfrun --runs 3 x.yaml").as_deref(), Some("--runs"));
        assert_eq!(first("perfrun -q"), None);
    }

    #[test]
    fn colour_is_known_before_anything_is_read() {
        assert_eq!(color(&words("perfrun --help --color never")), Color::Never);
        assert_eq!(color(&words("perfrun --color=always x.yaml")), Color::Always);
        assert_eq!(color(&words("perfrun x.yaml --color often")), Color::Auto);
        assert_eq!(color(&words("perfrun ab -- x --color=never")), Color::Auto);
    }
}
