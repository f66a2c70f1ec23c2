//! Ways by files, mounts, devices and control groups.

use std::cell::Cell;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use libc::c_long;

use super::calls::{self, BIND, DETACH, READ_ONLY, REMOUNT, bytes_of, call, mount, own_everything, own_mounts};
use super::word::{self, OK, OWN, Tried, Word, best, word};
use super::{Bait, Way, apart, here, way};
use crate::sys::{self, Argument};

/// The number of bytes read from the start of a file.
const LONGEST: usize = 200;
/// A path up to the root from any working folder.
const UP: &str = "/../../../../../../../../../../../..";

/// A folder for mounts, where there may be one.
pub struct Scratch {
    path: Option<String>,
    next: Cell<u32>,
}

impl Scratch {
    pub fn new() -> Self {
        let places =
            ["/tmp", "/data", "/dev/shm", "/run"].map(|place| format!("{place}/tare-doors-{}", std::process::id()));
        Self { path: places.into_iter().find(|path| make_folder(path).is_ok()), next: Cell::new(0) }
    }

    #[cfg(test)]
    pub fn none() -> Self {
        Self { path: None, next: Cell::new(0) }
    }

    /// A new folder. All of them are taken away at the end, when nothing is mounted there any more.
    pub fn folder(&self) -> String {
        let place = self.path.as_deref().unwrap_or("/mnt");
        let path = format!("{place}/{}-{}", std::process::id(), self.next.replace(self.next.get() + 1));
        let _ = make_folder(&path); // the mount says what is wrong
        path
    }

    /// A new folder with a filesystem of that kind on it.
    pub fn mounted(&self, kind: &str, source: &str, options: &str, flags: c_long) -> Tried<String> {
        let folder = self.folder();
        mount(source, &folder, kind, flags, options).map(|()| folder)
    }
}

/// Also where a line is no door. A process that ends at once takes nothing away.
impl Drop for Scratch {
    fn drop(&mut self) {
        let Some(path) = self.path.take() else { return };
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(path);
    }
}

fn make_folder(path: &str) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

pub fn mount_points() -> Vec<String> {
    let Ok(mounts) = fs::read("/proc/self/mountinfo") else { return vec!["/".to_owned()] };
    let text = word::shown(&mounts);
    text.lines().filter_map(|line| line.split_whitespace().nth(4)).map(unescaped).collect()
}

/// A path as mountinfo has it: a backslash and three octal digits are a byte.
fn unescaped(path: &str) -> String {
    let mut pieces = path.split('\\');
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                whole.push(char::from(byte));
                whole.push_str(&piece[3..]);
            }
            None => {
                whole.push('\\');
                whole.push_str(piece);
            }
        }
    }
    whole
}

fn opening(write: bool) -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.read(!write).write(write).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Opens for reading (`r`: and reads one byte, `o`: only opens) or writing (`w`), which changes nothing.
pub fn opened(path: &str, mode: &str) -> Tried {
    let mut file = opening(mode == "w").open(path).map_err(word::of)?;
    if mode != "r" {
        return Ok(());
    }
    match file.read(&mut [0]) {
        Ok(0) => Err("empty".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(word::of(error)),
    }
}

/// The first bytes of a file.
pub fn content(path: &str) -> Tried<Vec<u8>> {
    let mut text = vec![0; LONGEST];
    let length = opening(false).open(path).map_err(word::of)?.read(&mut text).unwrap_or(0);
    text.truncate(length);
    if text.is_empty() { Err("empty".to_owned()) } else { Ok(text) }
}

pub fn write(path: &str, text: &str) -> Tried {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().write(true).open(path).map_err(word::of)?;
    file.write_all(text.as_bytes()).map_err(word::of)
}

/// All that a path of the host's may be below a folder that may be any folder of the host's above it.
fn below(folder: &str, path: &str) -> Vec<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    (0..parts.len()).map(|first| format!("{folder}/{}", parts[first..].join("/"))).collect()
}

/// The host's canaries below such a folder: one is for root to read, one for everybody.
fn canary_below(bait: &Bait<'_>, folder: &str) -> Word {
    let places = bait.list("canaries").flat_map(|path| below(folder, path));
    best(places.map(|path| content(&path).map_or_else(|word| word, |text| word::read(&text))))
}

/// A file of a filesystem of the kernel's: as it is there; with what hides or guards it taken away; in a new mount of it.
pub fn try_file<'a>(scratch: &'a Scratch, path: &'a str, mode: &'a str, kind: &'a str, below: &'a str) -> Vec<Way<'a>> {
    let new = move || {
        word(scratch.mounted(kind, "none", "", 0).and_then(|folder| opened(&format!("{folder}/{below}"), mode)))
    };
    vec![
        way("as it is", move || word(opened(path, mode))),
        way("with its guard taken away", move || word(own_mounts().and_then(|()| unguarded(path, mode)))),
        way("in a new mount", move || own_mounts().map_or_else(|word| word, |()| new())),
        // A later process is in the new pid namespace.
        way("in a user namespace", move || own_everything().map_or_else(|word| word, |()| apart(new))),
    ]
}

fn unguarded(path: &str, mode: &str) -> Tried {
    let mut above: Vec<String> =
        mount_points().into_iter().filter(|point| path == point || path.starts_with(&format!("{point}/"))).collect();
    above.sort_by_key(|point| std::cmp::Reverse(point.len()));
    if above.is_empty() {
        return Err("ENOENT".to_owned());
    }
    let mut last = Err("EPERM".to_owned());
    for point in above.iter().filter(|point| *point != "/") {
        last = mount("none", point, "none", REMOUNT | BIND, "").and_then(|()| opened(path, mode));
        if last.is_ok() {
            return last;
        }
    }
    for point in above.iter().filter(|point| !["/", "/proc", "/sys"].contains(&point.as_str())) {
        let mut place = calls::text(point)?;
        last = call("umount2", &mut [Argument::Bytes(&mut place), Argument::Number(DETACH)])
            .and_then(|_| opened(path, mode));
        if last.is_ok() {
            return last;
        }
    }
    last.map_err(|word| if word == "empty" { "EPERM".to_owned() } else { word })
}

/// A mount in a user namespace is that namespace's own (Linux 6.7), and not the host's.
pub fn try_binfmt<'a>(scratch: &'a Scratch, path: &'a str) -> Vec<Way<'a>> {
    vec![
        way("as it is", move || word(opened(path, "w"))),
        way("in a new mount", move || {
            let register = own_mounts().and_then(|()| scratch.mounted("binfmt_misc", "none", "", 0));
            let tried = register.and_then(|folder| opened(&format!("{folder}/register"), "w"));
            word(tried.and_then(|()| if is_admin() { Ok(()) } else { Err(OWN.to_owned()) }))
        }),
    ]
}

pub fn try_mount<'a>(scratch: &'a Scratch, kind: &'a str) -> Vec<Way<'a>> {
    let mounted = move |own: Tried| word(own.and_then(|()| scratch.mounted(kind, "none", "", 0)).map(drop));
    vec![way("by mount", move || mounted(own_mounts())), way("in a user namespace", move || mounted(own_everything()))]
}

/// A device by its number, which is made and is gone again at once.
struct Node {
    kind: c_long,
    device: c_long,
}

impl Node {
    fn parse(letter: &str, number: &str) -> Result<Self, String> {
        let parsed = number.split_once(':').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let (major, minor): (c_long, c_long) = parsed.ok_or_else(|| format!("{number:?} is no device"))?;
        let kind = if letter == "b" { 0o060_600 } else { 0o020_600 };
        Ok(Self { kind, device: major << 8 | (minor & 0xff) | (minor & !0xff) << 12 })
    }

    fn used(&self, scratch: &Scratch, by: impl Fn(&str) -> Tried) -> Word {
        let new = own_mounts().and_then(|()| scratch.mounted("tmpfs", "none", "", 0)).ok();
        let places = ["/dev", "/tmp", "/data", "/"].map(str::to_owned);
        best(new.into_iter().chain(places).map(|place| {
            let path = format!("{place}/tare-node-{}", std::process::id());
            word(calls::text(&path).and_then(|mut node| {
                let (kind, device) = (Argument::Number(self.kind), Argument::Number(self.device));
                call("mknodat", &mut [Argument::Number(-100), Argument::Bytes(&mut node), kind, device])?;
                let tried = by(&path);
                let _ = fs::remove_file(&path);
                tried
            }))
        }))
    }
}

pub fn try_device<'a>(
    scratch: &'a Scratch,
    bait: &'a Bait<'a>,
    letter: &str,
    number: &str,
    path: &'a str,
    mode: &'a str,
) -> Result<Vec<Way<'a>>, String> {
    let number = if number == "disk" { bait.get(number) } else { Some(number) };
    let Some(number) = number else { return Ok(here("the host has no disk")) };
    let node = Node::parse(letter, number)?;
    let mut ways = Vec::new();
    if !path.is_empty() {
        ways.push(way("as it is", move || word(opened(path, mode))));
    }
    ways.push(way("by mknod", move || node.used(scratch, |path| opened(path, mode))));
    Ok(ways)
}

/// A filesystem that is read-only by its kind finds that this is none of its, or that the disk is in use.
pub fn try_disk_mount<'a>(scratch: &'a Scratch, bait: &'a Bait<'a>) -> Result<Vec<Way<'a>>, String> {
    let (Some(kind), Some(disk)) = (bait.get("reader"), bait.get("disk")) else {
        return Ok(here_by("by mount", "the host has no disk, or knows no read-only filesystem"));
    };
    let node = Node::parse("b", disk)?;
    Ok(vec![way("by mount", move || node.used(scratch, |path| scratch.mounted(kind, path, "", READ_ONLY).map(drop)))])
}

fn here_by<'a>(name: &str, reason: &'static str) -> Vec<Way<'a>> {
    vec![way(name, move || format!("-{reason}"))]
}

pub fn try_handle<'a>(bait: &'a Bait<'a>) -> Result<Vec<Way<'a>>, String> {
    let Some(handle) = bait.get("handle") else {
        return Ok(here("the filesystem of TARE_HOME gives no handles"));
    };
    let parsed = handle.split_once(':').and_then(|(kind, digits)| Some((kind.parse::<i32>().ok()?, bytes_of(digits)?)));
    let (kind, bytes) = parsed.ok_or_else(|| format!("{handle:?} is no handle"))?;
    let length = u32::try_from(bytes.len()).map_err(|error| error.to_string())?;
    let asked = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &bytes].concat();
    Ok(vec![way("by open_by_handle_at", move || {
        best(mount_points().iter().map(|point| by_handle(point, asked.clone()).unwrap_or_else(|word| word)))
    })])
}

fn by_handle(point: &str, mut asked: Vec<u8>) -> Tried<Word> {
    let place = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(point);
    let place = place.map_err(|_| "ENOENT".to_owned())?;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&place);
    let flags = Argument::Number(c_long::from(libc::O_RDONLY | libc::O_NONBLOCK));
    let answer = call("open_by_handle_at", &mut [Argument::Number(fd.into()), Argument::Bytes(&mut asked), flags])?;
    let mut text = [0; LONGEST];
    let length = fs::File::from(sys::opened(answer).map_err(word::of)?).read(&mut text).unwrap_or(0);
    Ok(word::read(&text[..length]))
}

pub fn try_files<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    vec![way("below every mount", move || {
        best(mount_points().iter().map(|point| canary_below(bait, if point == "/" { "" } else { point })))
    })]
}

pub fn try_proc<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    let each = move |part: &'static str, more: &'static str| {
        move || best(super::processes::folders().map(|of| canary_below(bait, &format!("{of}/{part}{more}"))))
    };
    vec![
        way("by roots", each("root", "")),
        way("by working folders", each("cwd", UP)),
        way("by open folders", move || {
            let open =
                super::processes::folders().flat_map(|of| fs::read_dir(of + "/fd").into_iter().flatten().flatten());
            best(open.map(|entry| canary_below(bait, &format!("{}{UP}", entry.path().display()))))
        }),
    ]
}

/// Leaves a chroot: a folder below it becomes the root, while the working folder stays outside of that.
pub fn try_chroot<'a>(scratch: &'a Scratch, bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    vec![way("by a chroot in it", move || {
        if let Err(error) = rustix::process::chroot(scratch.folder()) {
            return word::of(error);
        }
        for _ in 0..32 {
            let _ = std::env::set_current_dir("..");
        }
        let _ = rustix::process::chroot(".");
        canary_below(bait, "")
    })]
}

pub fn try_hostfs<'a>(scratch: &'a Scratch, bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    let at = move |options: &'static str| {
        move || {
            let mounted = own_mounts().and_then(|()| scratch.mounted("hostfs", "none", options, 0));
            mounted.map_or_else(|word| word, |folder| canary_below(bait, &folder))
        }
    };
    vec![way("its root", at("/")), way("above its root", at("/../../../../../../../.."))]
}

/// Folders that a machine's monitor may share.
pub fn try_shares<'a>(scratch: &'a Scratch, bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    vec![way("by their tags", move || {
        if let Err(word) = own_mounts() {
            return word;
        }
        let by_tag = tags().into_iter().flat_map(|tag| {
            [("9p", "trans=virtio"), ("virtiofs", "")].map(|(kind, options)| {
                let mounted = scratch.mounted(kind, &tag, options, 0);
                mounted.map_or_else(|word| word, |folder| canary_below(bait, &folder))
            })
        });
        best(std::iter::once("ENODEV".to_owned()).chain(by_tag))
    })]
}

fn tags() -> Vec<String> {
    let folders = [("/sys/bus/virtio/drivers/9pnet_virtio", "mount_tag"), ("/sys/fs/virtiofs", "tag")];
    let files = folders.iter().flat_map(|(folder, name)| {
        fs::read_dir(folder).into_iter().flatten().flatten().map(move |entry| entry.path().join(name))
    });
    let texts = files.filter_map(|file| content(file.to_str()?).ok());
    texts.map(|text| word::shown(&text).trim_end_matches(|c: char| c.is_whitespace() || c == '\0').to_owned()).collect()
}

/// The ways to control groups: each hierarchy that is mounted, and those of version 1 that the kernel has, mounted again.
///
/// `by` gets a hierarchy's folder, and its controllers or its path; it returns None for a hierarchy of no interest.
pub fn ways_to_groups<'a>(scratch: &'a Scratch, by: impl Fn(&str, &str) -> Option<Word> + Copy + 'a) -> Vec<Way<'a>> {
    let there = move || {
        let points = mount_points().into_iter().filter(|point| point.starts_with("/sys/fs/cgroup"));
        points.filter_map(move |point| by(&point, &point))
    };
    let all = move |own: Tried| {
        if let Err(word) = own {
            return word;
        }
        let groups = word::shown(&fs::read("/proc/self/cgroup").unwrap_or_default());
        let new = groups.lines().filter_map(|line| {
            let controllers = line.split(':').nth(1)?;
            let (kind, options) = if controllers.is_empty() { ("cgroup2", "") } else { ("cgroup", controllers) };
            let none = if options.starts_with("name=") { "none," } else { "" };
            match scratch.mounted(kind, "none", &format!("{none}{options}"), 0) {
                Ok(folder) => by(&folder, controllers),
                Err(word) => Some(word),
            }
        });
        best(there().chain(new))
    };
    vec![
        way("as it is", move || best(there())),
        way("in a new mount", move || all(own_mounts())),
        way("in a user namespace", move || all(own_everything())),
    ]
}

/// Whether it is root of the host's, and not of a user namespace: what the kernel looks at when a file is written (5.17).
fn is_admin() -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let whole = read("/proc/self/uid_map").lines().any(|line| line.split_whitespace().eq(["0", "0", "4294967295"]));
    let status = read("/proc/self/status");
    let effective = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    whole && effective.is_some_and(|set| set & 1 << 21 != 0)
}

pub fn try_release_agent(scratch: &Scratch) -> Vec<Way<'_>> {
    ways_to_groups(scratch, |folder, _| {
        let tried = opened(&format!("{folder}/release_agent"), "w");
        Some(word(tried.and_then(|()| if is_admin() { Ok(()) } else { Err("EPERM".to_owned()) })))
    })
}

/// The group that tare made and set the limits of has a name on the host and, in each hierarchy, a number. A group at the
/// top of what is mounted here may be that group or, in a control group namespace, a group below it, which it still limits.
pub fn try_limits<'a>(scratch: &'a Scratch, bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    const LIMITS: [&str; 6] =
        ["memory.limit_in_bytes", "memory.max", "cpuset.cpus", "cpu.cfs_quota_us", "cpu.max", "pids.max"];
    ways_to_groups(scratch, |folder, _| {
        let groups = below(folder, bait.text("group")).into_iter().chain([folder.to_owned()]);
        Some(best(groups.map(|group| {
            let known = fs::metadata(&group).map(|of| format!("{}:{}", of.dev(), of.ino())).unwrap_or_default();
            let word = best(LIMITS.map(|name| word(opened(&format!("{group}/{name}"), "w"))));
            if word == OK && !bait.list("limited").any(|limited| limited == known) { OWN.to_owned() } else { word }
        })))
    })
}

/// Files that run as root for whoever may open them; what is in them is no program. The host looks where they are.
pub fn try_setuid<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    let made = move |place: &'static str| {
        move || setuid_file(&format!("{place}/{}", bait.text("file"))).unwrap_or_else(|word| word)
    };
    ["/data", "/tmp", "/", "/dev/shm"].map(|place| way(format!("in {place}"), made(place))).into()
}

fn setuid_file(path: &str) -> Tried<Word> {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let _ = options.open(path).map_err(word::of)?.write_all(b"tare\n");
    fs::set_permissions(Path::new(path), fs::Permissions::from_mode(0o4755)).map_err(word::of)?;
    Ok("made".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_looked_for_below_every_folder_above_it() {
        assert_eq!(below("/x", "/a/b/c"), ["/x/a/b/c", "/x/b/c", "/x/c"]);
        assert_eq!(below("", "/a"), ["/a"]);
    }

    #[test]
    fn mount_points_have_their_spaces() {
        assert_eq!(unescaped(r"/a\040b\\c"), r"/a b\\c");
        assert!(mount_points().contains(&"/".to_owned()));
    }

    #[test]
    fn devices_are_numbered_as_the_kernel_does() {
        let node = Node::parse("b", "8:300").unwrap();
        assert_eq!((node.kind, node.device), (0o060_600, 0x10_082c));
        assert!(Node::parse("c", "1").is_err());
    }

    #[test]
    fn files_are_opened_and_never_changed() {
        assert_eq!(opened("/dev/zero", "r"), Ok(()));
        assert_eq!(opened("/dev/null", "r"), Err("empty".to_owned()));
        assert_eq!(opened("/dev/null", "w"), Ok(()));
        assert_eq!(opened("/nowhere", "o"), Err("ENOENT".to_owned()));
        assert_eq!(content("/nowhere"), Err("ENOENT".to_owned()));
    }
}
