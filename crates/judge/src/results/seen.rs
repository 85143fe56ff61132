//! What was odd: codes.

use std::collections::BTreeMap;

use super::RecordCode;
use super::cell::CodeSeen;
use crate::summary::{CellSummary, Summary, record_codes};
use base::privacy::without_home;
use record::Manifest;

pub(super) fn codes_of_record(manifest: &Manifest, summary: &Summary) -> BTreeMap<String, RecordCode> {
    let found = record_codes(manifest, summary).into_iter().map(|code| {
        (String::from(code.code), RecordCode { severity: code.code.severity(), found: without_home(&code.found) })
    });
    found.collect()
}

pub(super) fn codes(summary: &CellSummary) -> BTreeMap<String, CodeSeen> {
    let seen =
        |(code, runs): (&str, Option<u32>)| (code.to_owned(), CodeSeen { severity: summary.severity(code), runs });
    summary.codes().into_iter().map(seen).collect()
}
