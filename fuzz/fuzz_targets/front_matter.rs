#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| duplexer_fuzz_checks::front_matter(data));
