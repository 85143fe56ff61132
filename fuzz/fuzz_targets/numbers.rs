#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| perfrun::fuzzing::numbers(bytes));
