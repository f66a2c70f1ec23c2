//! System calls by their names, with arguments from a line or from an attempt.

use std::ffi::CString;

use libc::c_long;

use super::word::{self, Tried, Word, word};
use super::{Way, here, way};
use crate::sys::{self, Argument};

pub const BIND: c_long = 0x1000;
pub const REMOUNT: c_long = 0x20;
pub const DETACH: c_long = 2;
pub const READ_ONLY: c_long = 1;
/// With all mounts below.
const PRIVATE: c_long = 0x44000;
const NEW_MOUNTS: c_long = 0x2_0000;
const NEW_USER: c_long = 0x1000_0000;
/// Control groups, processes and networks.
const NEW_REST: c_long = 0x200_0000 | 0x2000_0000 | 0x4000_0000;

fn number_of(name: &str) -> Option<c_long> {
    Some(match name {
        "acct" => libc::SYS_acct,
        "bpf" => libc::SYS_bpf,
        "delete_module" => libc::SYS_delete_module,
        "finit_module" => libc::SYS_finit_module,
        "init_module" => libc::SYS_init_module,
        #[cfg(target_arch = "x86_64")]
        "iopl" => libc::SYS_iopl,
        "kexec_load" => libc::SYS_kexec_load,
        "keyctl" => libc::SYS_keyctl,
        "mknodat" => libc::SYS_mknodat,
        "mount" => libc::SYS_mount,
        "open_by_handle_at" => libc::SYS_open_by_handle_at,
        "perf_event_open" => libc::SYS_perf_event_open,
        "ptrace" => libc::SYS_ptrace,
        "reboot" => libc::SYS_reboot,
        "sethostname" => libc::SYS_sethostname,
        "settimeofday" => libc::SYS_settimeofday,
        "swapoff" => libc::SYS_swapoff,
        "syslog" => libc::SYS_syslog,
        "umount2" => libc::SYS_umount2,
        "unshare" => libc::SYS_unshare,
        _ => return None,
    })
}

/// A system call by its name.
pub fn call(name: &str, arguments: &mut [Argument<'_>]) -> Tried<c_long> {
    let number = number_of(name).ok_or_else(|| format!("-this agent does not know {name}"))?;
    sys::call(number, arguments).map_err(word::of)
}

/// A text for a system call.
pub fn text(text: &str) -> Tried<Vec<u8>> {
    CString::new(text).map(CString::into_bytes_with_nul).map_err(|_| "EINVAL".to_owned())
}

pub fn unshare(flags: c_long) -> Tried {
    call("unshare", &mut [Argument::Number(flags)]).map(drop)
}

/// Mounts what is at `source`, or a filesystem of that kind; without options the kernel is given none.
pub fn mount(source: &str, place: &str, kind: &str, flags: c_long, options: &str) -> Tried {
    let (mut source, mut place, mut kind, mut data) = (text(source)?, text(place)?, text(kind)?, text(options)?);
    let options = if options.is_empty() { Argument::Number(0) } else { Argument::Bytes(&mut data) };
    let places = [Argument::Bytes(&mut source), Argument::Bytes(&mut place), Argument::Bytes(&mut kind)];
    let [source, place, kind] = places;
    call("mount", &mut [source, place, kind, Argument::Number(flags), options]).map(drop)
}

/// A mount namespace of its own, of which nothing comes to the host.
pub fn own_mounts() -> Tried {
    unshare(NEW_MOUNTS)?;
    mount("none", "/", "none", PRIVATE, "")
}

/// All namespaces of its own, in which it has all capabilities; its own user is root there.
pub fn own_everything() -> Tried {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()); // there not yet known
    unshare(NEW_USER | NEW_MOUNTS | NEW_REST)?;
    let maps =
        [("setgroups", "deny".to_owned()), ("uid_map", format!("0 {user} 1")), ("gid_map", format!("0 {group} 1"))];
    for (name, map) in maps {
        super::files::write(&format!("/proc/self/{name}"), &map).map_err(|word| format!("{name}: {word}"))?;
    }
    mount("none", "/", "none", PRIVATE, "")
}

/// A call as its line has it: `i:` a number, `x:` bytes, `s:` a text.
pub fn try_call<'a>(arguments: &[&'a str]) -> Result<Vec<Way<'a>>, String> {
    let Some((&name, rest)) = arguments.split_first() else { return Err("no call is named".to_owned()) };
    let mut given = rest.iter().map(|argument| Given::parse(argument)).collect::<Result<Vec<_>, _>>()?;
    Ok(vec![way("by the call", move || {
        word(call(name, &mut given.iter_mut().map(Given::argument).collect::<Vec<_>>()).map(drop))
    })])
}

enum Given {
    Number(c_long),
    Bytes(Vec<u8>),
}

impl Given {
    fn parse(argument: &str) -> Result<Self, String> {
        let wrong = || format!("{argument:?} is no argument of a call");
        match argument.split_once(':').ok_or_else(wrong)? {
            ("i", number) => number.parse().map(Self::Number).map_err(|_| wrong()),
            ("x", digits) => bytes_of(digits).map(Self::Bytes).ok_or_else(wrong),
            ("s", words) => text(words).map(Self::Bytes),
            _ => Err(wrong()),
        }
    }

    fn argument(&mut self) -> Argument<'_> {
        match self {
            Self::Number(number) => Argument::Number(*number),
            Self::Bytes(bytes) => Argument::Bytes(bytes),
        }
    }
}

/// The bytes of their digits, two each.
pub fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// A program for a kprobe, which reads all of the kernel's memory once it is attached: return 0, and never attached.
pub fn try_bpf<'a>() -> Vec<Way<'a>> {
    vec![way("by the call", || {
        let mut code = [0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0_u8];
        let mut license = *b"GPL\0";
        let mut order = Vec::new();
        order.extend([5_u32, 2].iter().flat_map(|number| number.to_ne_bytes()));
        order.extend((code.as_mut_ptr().expose_provenance() as u64).to_ne_bytes());
        order.extend((license.as_mut_ptr().expose_provenance() as u64).to_ne_bytes());
        order.extend([0; 24]);
        // An order is some bytes long.
        #[allow(clippy::cast_possible_wrap)]
        let length = order.len() as c_long;
        word(call("bpf", &mut [Argument::Number(5), Argument::Bytes(&mut order), Argument::Number(length)]).map(drop))
    })]
}

pub fn try_user_namespace<'a>() -> Vec<Way<'a>> {
    vec![way("by unshare", || word(unshare(NEW_USER)))]
}

/// The key of the host's root, in the keyrings that this process reaches.
pub fn try_keys(key: Option<&str>) -> Vec<Way<'_>> {
    const SEARCH: c_long = 10;
    const READ: c_long = 11;
    const JOIN: c_long = 1;
    const LINK: c_long = 8;
    const USERS: c_long = -4;
    const SESSIONS: c_long = -3;
    const LONGEST: usize = 200;
    let Some(key) = key else { return here("the host takes no keys") };
    let search = move |ring: c_long| -> Tried<Word> {
        let (mut kind, mut description) = (text("user")?, text(key)?);
        let arguments = &mut [
            Argument::Number(SEARCH),
            Argument::Number(ring),
            Argument::Bytes(&mut kind),
            Argument::Bytes(&mut description),
            Argument::Number(0),
        ];
        let found = call("keyctl", arguments)?;
        let mut content = [0; LONGEST];
        // Two hundred.
        #[allow(clippy::cast_possible_wrap)]
        let most = LONGEST as c_long;
        let arguments = &mut [
            Argument::Number(READ),
            Argument::Number(found),
            Argument::Bytes(&mut content),
            Argument::Number(most),
        ];
        let length = usize::try_from(call("keyctl", arguments)?).unwrap_or(0).min(LONGEST);
        Ok(format!("={}", word::shown(&content[..length])))
    };
    let found = move |ring| search(ring).unwrap_or_else(|word| word);
    vec![
        way("in the user's keyring", move || found(USERS)),
        way("in the session's keyring", move || found(SESSIONS)),
        way("with the user's keyring linked into a session of its own", move || {
            let joined = call("keyctl", &mut [Argument::Number(JOIN), Argument::Number(0)]);
            let link = &mut [Argument::Number(LINK), Argument::Number(USERS), Argument::Number(SESSIONS)];
            joined.and_then(|_| call("keyctl", link)).and_then(|_| search(SESSIONS)).unwrap_or_else(|word| word)
        }),
        way("listed in /proc/keys", move || match std::fs::read("/proc/keys") {
            Err(error) => word::of(error),
            Ok(listed) if word::shown(&listed).contains(key) => word::OK.to_owned(),
            Ok(_) => "ENOENT".to_owned(),
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_numbers_bytes_and_texts() {
        assert!(matches!(Given::parse("i:-1"), Ok(Given::Number(-1))));
        assert!(matches!(Given::parse("x:00ff"), Ok(Given::Bytes(bytes)) if bytes == [0, 255]));
        assert!(matches!(Given::parse("s:tare"), Ok(Given::Bytes(bytes)) if bytes == b"tare\0"));
        for wrong in ["", "i:", "x:0", "x:zz", "y:1", "s:\0"] {
            assert!(Given::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_call_that_is_not_known_cannot_be_tried() {
        assert_eq!(call("dance", &mut []), Err("-this agent does not know dance".to_owned()));
    }
}
