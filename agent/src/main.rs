use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args();
    // An application's root may have no `true`, which every instance runs first.
    if words.next().is_some_and(|name| name == "true" || name.ends_with("/true")) {
        return ExitCode::SUCCESS;
    }
    tare_agent::cli::run(words)
}
