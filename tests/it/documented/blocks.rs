//! The fenced blocks of README and of the pages of `docs`, the commands in them, and the examples of the help.

use perfrun::ui::cli;
use walkdir::WalkDir;

use super::root;

pub(super) struct Page {
    /// From the root of the repository: `docs/changes.md`; `help diff` of what `perfrun diff --help` shows.
    pub path: String,
    pub blocks: Vec<Block>,
}

pub(super) struct Block {
    /// What stands behind the fence: `sh`, `yaml,fragment`.
    pub info: String,
    pub text: String,
}

/// A command, what the page says of its end, and what it shows of its output.
pub(super) struct Line {
    pub command: String,
    pub code: i32,
    pub shown: Vec<String>,
}

/// README and every page of `docs`, in the order of their paths.
pub(super) fn pages() -> Vec<Page> {
    let files =
        WalkDir::new(root().join("docs")).sort_by_file_name().into_iter().map(|entry| entry.unwrap().into_path());
    let documents = files.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let page = |path: std::path::PathBuf| {
        let below = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        Page { blocks: blocks(&std::fs::read_to_string(&path).unwrap()), path: below }
    };
    std::iter::once(root().join("README.md")).chain(documents).map(page).collect()
}

/// The examples of every command's help, as a page for each.
pub(super) fn helps() -> Vec<Page> {
    let page = |command: cli::Shown| {
        let text = command.examples.iter().map(|line| format!("{line}\n")).collect();
        Page { path: format!("help {}", command.name), blocks: vec![Block { info: "sh".to_owned(), text }] }
    };
    cli::shown().into_iter().filter(|command| !command.examples.is_empty()).map(page).collect()
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some(Block { info: info.trim().to_owned(), text: String::new() }),
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block has no end");
    found
}

impl Block {
    /// The file that the block is, by the comment in its first line: `# experiments/int8.yaml`.
    pub fn file(&self) -> Option<&str> {
        let path = self.text.lines().next()?.strip_prefix("# ")?;
        let is_path = !path.contains(' ')
            && path.rsplit_once('.').is_some_and(|(name, ending)| {
                !name.is_empty() && ["yaml", "yml", "py", "toml", "sh", "j2"].contains(&ending)
            });
        is_path.then_some(path)
    }

    /// The commands of a block of shell, and of a session: a block whose commands stand behind `$ `, above their output.
    pub fn lines(&self) -> Vec<Line> {
        assert!(!["bash", "console", "shell"].contains(&self.info.as_str()), "a block of shell begins with ```sh");
        let text = self.text.replace("\\\n", " ");
        let mut found: Vec<Line> = Vec::new();
        for line in text.lines() {
            match (self.info.as_str(), line.strip_prefix("$ "), found.last_mut()) {
                ("sh", None, _) => found.extend(Line::read(line)),
                ("text", Some(command), _) => found.extend(Line::read(command)),
                ("text", None, Some(last)) => last.shown.push(line.to_owned()),
                ("sh", Some(_), _) => panic!("a block with output is ```text: {line}"),
                _ => {}
            }
        }
        found
    }
}

impl Line {
    /// A command with the comment behind it, which may promise an exit code.
    fn read(line: &str) -> Option<Line> {
        let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
        let promised = ["exit code ", "ends with "].iter().find_map(|words| comment.split_once(words));
        let digits = promised.map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        let code = digits.map_or(0, |digits| digits.parse().unwrap());
        let command = command.trim().to_owned();
        let is_command = !command.is_empty() && !command.starts_with('#');
        is_command.then(|| Line { command, code, shown: Vec::new() })
    }
}
