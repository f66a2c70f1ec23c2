//! The words that say what came of an attempt: `OK`, the name of an error, `=` with what was read, or `-` with the reason
//! why it cannot be tried or was not tried to its end.

use std::io;

use libc::c_int;

/// The result of an attempt; every character of it is a byte.
pub type Word = String;
/// The thing that was reached, or the word for why it was not.
pub type Tried<T = ()> = Result<T, Word>;

pub const OK: &str = "OK";
/// The thing that was reached belongs to the instance itself.
pub const OWN: &str = "the instance's own";

macro_rules! names {
    ($($name:ident)*) => { &[$((libc::$name, stringify!($name))),*] };
}

/// If a number has two names, the first counts.
const NAMES: &[(c_int, &str)] = names! {
    E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG EBADR EBADRQC EBADSLT
    EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EDOM EDOTDOT EDQUOT
    EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM
    EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN ELNRNG ELOOP
    EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS
    ENOCSI ENODATA ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC ENOSR
    ENOSTR ENOSYS ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOVERFLOW
    EOWNERDEAD EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART ERFKILL
    EROFS ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH
    EUSERS EXDEV EXFULL
};

/// The name of an error.
pub fn of(error: impl Into<io::Error>) -> Word {
    let number = error.into().raw_os_error().unwrap_or(libc::EINVAL); // std itself refuses a text with a zero byte
    NAMES.iter().find(|(of, _)| *of == number).map_or_else(|| format!("errno {number}"), |(_, name)| (*name).to_owned())
}

/// The word for bytes that were read.
pub fn read(text: &[u8]) -> Word {
    if text.is_empty() { "empty".to_owned() } else { format!("={}", shown(text)) }
}

/// Bytes as characters, each as it is.
pub fn shown(text: &[u8]) -> String {
    text.iter().copied().map(char::from).collect()
}

/// The word for an attempt that reached what it was for, or did not.
pub fn word(tried: Tried) -> Word {
    tried.err().unwrap_or_else(|| OK.to_owned())
}

/// The best word: what was reached, else what is the instance's own, else the last refusal.
pub fn best(words: impl IntoIterator<Item = Word>) -> Word {
    let (mut own, mut last) = (false, None);
    for word in words {
        if word == OK || word.starts_with('=') {
            return word;
        }
        own |= word == OWN;
        last = Some(word);
    }
    if own { OWN.to_owned() } else { last.unwrap_or_else(|| "ENOENT".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Word {
        best(line.split(',').filter(|word| !word.is_empty()).map(str::to_owned))
    }

    #[test]
    fn what_was_reached_is_best_and_the_last_refusal_is_next() {
        assert_eq!(words("EPERM,=text,OK"), "=text");
        assert_eq!(words("the instance's own,EPERM"), OWN);
        assert_eq!(words("EPERM,EROFS"), "EROFS");
        assert_eq!(words(""), "ENOENT");
    }

    #[test]
    fn errors_have_their_names() {
        for (number, name) in [(1, "EPERM"), (2, "ENOENT"), (11, "EAGAIN"), (95, "ENOTSUP"), (38, "ENOSYS")] {
            assert_eq!(of(io::Error::from_raw_os_error(number)), name);
        }
        assert_eq!(of(io::Error::from_raw_os_error(4000)), "errno 4000");
    }

    #[test]
    fn every_byte_is_a_character() {
        assert_eq!(read(b"\xffa"), "=\u{ff}a");
        assert_eq!(read(b""), "empty");
    }
}
