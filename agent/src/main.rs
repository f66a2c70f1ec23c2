use std::process::ExitCode;

fn main() -> ExitCode {
    tare_agent::cli::run(std::env::args().skip(1))
}
