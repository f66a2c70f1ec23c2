# Tries doors from inside an instance, each in a process of its own that ends at once. It is harmless where a door is
# open: files are opened and never written, calls get arguments that the kernel refuses after it has looked at the
# caller's rights, what is mounted is so in a mount namespace that ends with the process, and it is never a disk's.
#
# Standard input: lines of words with tabs between. "set NAME VALUE" says what the host made for this (`escapes.py`), and
# "NAME ATTEMPT ARGUMENT..." is a door (`doors.py`). Standard output: "fact NAME VALUE", and for each way to a door
# "door NAME WAY WORD": OK, the name of the error, "=TEXT" for what was read, or "-REASON" where it cannot be tried or was
# not tried to its end. The last line is "end".
use strict;
use warnings;
use Errno ();
use Fcntl;
use POSIX qw(SIGALRM SIGSYS);
use Socket qw(:DEFAULT AF_INET6 SOCK_NONBLOCK);
use Time::HiRes ();

$| = 1;
require 'syscall.ph';

use constant {
    BIND => 0x1000, REMOUNT => 0x20, PRIVATE => 0x44000, DETACH => 2,    # mount(2); PRIVATE: with all below
    READ_ONLY => 1,
    NEW_MOUNTS => 0x20000, NEW_USER => 0x10000000, NEW_REST => 0x2000000 | 0x20000000 | 0x40000000,    # cgroup, pid, net
    LIMIT_S => 20,    # a machine that is emulated takes seconds
    FORK_S => 15,     # in which a limit of processes is looked for
    PACE_S => 3,      # by then it is known whether that many can be made in it
    DIAL_S => 2,      # by then who is next door has answered
    OWN => "the instance's own",
};

my %given;      # what the host made
my %name = map { (Errno->can($_) // next)->() => $_ } reverse sort keys %!;

sub word { $! ? $name{ $! + 0 } // 'errno ' . ($! + 0) : 'OK' }

# A system call by its name; integers as they are, strings as pointers.
sub call {
    my ($name, @arguments) = @_;
    my $number = main->can("SYS_$name") // main->can("__NR_$name") // return '-this perl does not know ' . $name;
    $! = 0;
    my $answer = syscall($number->(), @arguments);
    return $answer == -1 ? word() : 'OK';
}

# The words that come of some code in a process of its own.
sub apart {
    my ($code) = @_;
    pipe(my $from, my $to) or die;
    my $pid = fork // die;
    if (!$pid) {
        close $from;
        alarm LIMIT_S;
        print $to map { "$_\n" } $code->();
        close $to;
        POSIX::_exit(0);
    }
    close $to;
    chomp(my @words = <$from>);
    waitpid $pid, 0;
    return @words if @words;
    my $signal = $? & 127;
    return 'killed by signal ' . $signal if $signal == SIGSYS;    # how a filter may refuse
    return $signal == SIGALRM ? '-it took more than ' . LIMIT_S . ' s' : $signal ? "-signal $signal ended it" : '-it ended without a word';
}

# The best word: what was reached, else what is the instance's own, else the last refusal.
sub best {
    my @words = @_;
    return (grep { $_ eq 'OK' || /^=/ } @words)[0] // (grep { $_ eq OWN } @words)[0] // $words[-1] // 'ENOENT';
}

sub own_mounts {
    my $word = call('unshare', NEW_MOUNTS);
    return $word if $word ne 'OK';
    return call('mount', 'none', '/', 'none', PRIVATE, 0);    # nothing of it comes to the host
}

# All namespaces of its own, in which it has all capabilities; its own user is root there.
sub own_everything {
    my ($uid, $gid) = ($> + 0, $) + 0);    # in the new namespace nobody's yet
    my $word = call('unshare', NEW_USER | NEW_MOUNTS | NEW_REST);
    return $word if $word ne 'OK';
    for (['setgroups', 'deny'], ['uid_map', "0 $uid 1"], ['gid_map', "0 $gid 1"]) {
        my $file;
        sysopen($file, "/proc/self/$_->[0]", O_WRONLY) && syswrite($file, $_->[1]) or return "$_->[0]: " . word();
    }
    return call('mount', 'none', '/', 'none', PRIVATE, 0);
}

sub mount_points {
    open my $file, '<', '/proc/self/mountinfo' or return '/';
    return map { my $point = (split)[4]; $point =~ s/\\(\d{3})/chr oct $1/ge; $point } <$file>;
}

# A new folder for a mount. The process that reads the doors removes all of them, when nothing is mounted there any more.
my $scratch;
for my $path (map { "$_/tare-doors-$$" } '/tmp', '/data', '/dev/shm', '/run') {
    if (mkdir $path, 0700) { $scratch = $path; last }
}
my $folders = 0;

sub folder {
    my $path = ($scratch // '/mnt') . "/$$-" . $folders++;
    mkdir $path, 0700;
    return $path;
}

# Open for reading ("r": and read one byte, "o": only open) or writing ("w"), which changes nothing.
sub opened {
    my ($path, $mode) = @_;
    $! = 0;
    sysopen(my $file, $path, ($mode eq 'w' ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY) or return word();
    return 'OK' if $mode ne 'r';
    my $read = sysread $file, my $byte, 1;
    return !defined $read ? word() : $read ? 'OK' : 'empty';
}

sub content {
    my ($path) = @_;
    $! = 0;
    sysopen(my $file, $path, O_RDONLY | O_NONBLOCK) or return word();
    sysread($file, my $text, 200) or return 'empty';
    return '=' . $text;
}

# All that a path of the host's may be below a folder that may be any folder of the host's above it.
sub below {
    my ($folder, $path) = @_;
    my @parts = grep { length } split m{/}, $path;
    return map { join '/', $folder, @parts[$_ .. $#parts] } 0 .. $#parts;
}

# The host's canaries below such a folder: one is for root to read, one for everybody.
sub canary_below {
    my ($folder) = @_;
    return best(map { content($_) } map { below($folder, $_) } split /,/, $given{canaries});
}

sub mounted {
    my ($kind, $source, $options, $flags) = @_;
    my $folder = folder();
    return (call('mount', $source, $folder, $kind, $flags // 0, length $options ? $options : 0), $folder);
}

# One of a filesystem of the kernel's: as it is there; with what hides or guards it taken away; in a new mount of it.
sub try_file {
    my ($path, $mode, $kind, $below) = @_;
    my $new = sub {
        my ($word, $folder) = mounted($kind, 'none', '');
        return $word eq 'OK' ? opened("$folder/$below", $mode) : $word;
    };
    return (
        'as it is' => sub { opened($path, $mode) },
        'with its guard taken away' => sub {
            my $word = own_mounts();
            return $word if $word ne 'OK';
            my @above = sort { length $b <=> length $a } grep { $path eq $_ || index($path, "$_/") == 0 } mount_points();
            return 'ENOENT' if !@above;
            for (@above) {
                return 'OK' if $_ ne '/' && call('mount', 'none', $_, 'none', REMOUNT | BIND, 0) eq 'OK' && opened($path, $mode) eq 'OK';
            }
            for (grep { $_ ne '/' && $_ ne '/proc' && $_ ne '/sys' } @above) {
                return 'OK' if call('umount2', $_, DETACH) eq 'OK' && opened($path, $mode) eq 'OK';
            }
            return word() eq 'OK' ? 'EPERM' : word();
        },
        'in a new mount' => sub { my $word = own_mounts(); $word eq 'OK' ? $new->() : $word },
        'in a user namespace' => sub {
            my $word = own_everything();
            return $word eq 'OK' ? apart($new) : $word;    # a process later is in the new pid namespace
        },
    );
}

# What is mounted in a user namespace is that namespace's own (Linux 6.7), and not the host's.
sub try_binfmt {
    my ($path) = @_;
    return (
        'as it is' => sub { opened($path, 'w') },
        'in a new mount' => sub {
            my $word = own_mounts();
            return $word if $word ne 'OK';
            ($word, my $folder) = mounted('binfmt_misc', 'none', '');
            $word = opened("$folder/register", 'w') if $word eq 'OK';
            return $word eq 'OK' && !is_admin() ? OWN : $word;
        },
    );
}

sub try_mount {
    my ($kind) = @_;
    return (
        'by mount' => sub { my $word = own_mounts(); $word eq 'OK' ? (mounted($kind, 'none', ''))[0] : $word },
        'in a user namespace' => sub { my $word = own_everything(); $word eq 'OK' ? (mounted($kind, 'none', ''))[0] : $word },
    );
}

# A device that is there, or that is made, and is gone again at once.
sub with_node {
    my ($letter, $number, $use) = @_;
    my ($major, $minor) = split /:/, $number;
    my $type = $letter eq 'b' ? 0060600 : 0020600;
    my $device = ($major << 8) | ($minor & 0xff) | (($minor & ~0xff) << 12);
    my @words;
    my @places = ('/dev', '/tmp', '/data', '/');
    if (own_mounts() eq 'OK') {
        my ($word, $folder) = mounted('tmpfs', 'none', '');
        unshift @places, $folder if $word eq 'OK';
    }
    for my $place (@places) {
        my $node = "$place/tare-node-$$";
        my $word = call('mknodat', -100, $node, $type, $device);
        if ($word eq 'OK') { $word = $use->($node); unlink $node }
        push @words, $word;
    }
    return best(@words);
}

sub try_device {
    my ($letter, $number, $path, $mode) = @_;
    $number = $given{$number} // return (here => sub { '-the host has no disk' }) if $number eq 'disk';
    return (
        ($path ? ('as it is' => sub { opened($path, $mode) }) : ()),
        'by mknod' => sub { with_node($letter, $number, sub { opened($_[0], $mode) }) },
    );
}

# A filesystem that is read-only by its kind finds that this is none of its, or that the disk is in use.
sub try_disk_mount {
    my $kind = $given{reader} // return ('by mount' => sub { '-the host has no disk, or knows no read-only filesystem' });
    return 'by mount' => sub {
        with_node('b', $given{disk}, sub { (mounted($kind, $_[0], '', READ_ONLY))[0] });
    };
}

sub try_call {
    my ($name, @arguments) = @_;
    @arguments = map { /^i:(.*)/ ? $1 + 0 : /^x:(.*)/ ? pack('H*', $1) : /^s:(.*)/ ? "$1" : die } @arguments;
    return 'by the call' => sub { call($name, @arguments) };
}

# A program for a kprobe, which reads all of the kernel's memory once it is attached: return 0, and never attached.
sub try_bpf {
    my $code = pack 'CCsl CCsl', 0xb7, 0, 0, 0, 0x95, 0, 0, 0;
    my $license = "GPL\0";
    my $order = pack 'L L P P L L Q L L', 5, 2, $code, $license, 0, 0, 0, 0, 0;
    return 'by the call' => sub { call('bpf', 5, $order, length $order) };
}

sub try_handle {
    my $handle = $given{handle} // return (here => sub { '-the filesystem of TARE_HOME gives no handles' });
    my ($type, $bytes) = split /:/, $handle;
    my $asked = pack('L l', length($bytes) / 2, $type) . pack('H*', $bytes);
    return 'by open_by_handle_at' => sub {
        best(map {
            my $word = 'ENOENT';
            if (sysopen my $place, $_, O_RDONLY | O_NONBLOCK) {
                $! = 0;
                my $fd = syscall(&SYS_open_by_handle_at, fileno $place, $asked, O_RDONLY | O_NONBLOCK);
                my $text;
                $word = $fd == -1 ? word() : POSIX::read($fd, $text, 200) ? "=$text" : 'empty';
            }
            $word;
        } mount_points());
    };
}

sub try_files { return 'below every mount' => sub { best(map { canary_below($_ eq '/' ? '' : $_) } mount_points()) } }

sub try_proc {
    my $up = '/..' x 12;
    return map {
        my ($way, $pattern, $more) = @$_;
        ($way => sub { best(map { canary_below("$_$more") } glob $pattern) });
    } (['by roots', '/proc/[0-9]*/root', ''], ['by working folders', '/proc/[0-9]*/cwd', $up],
        ['by open folders', '/proc/[0-9]*/fd/*', $up]);
}

# What leaves a chroot: a folder below it becomes the root, while the working folder stays outside of that.
sub try_chroot {
    return 'by a chroot in it' => sub {
        my $folder = folder();
        $! = 0;
        my $word = chroot($folder) ? 'OK' : word();
        if ($word eq 'OK') { chdir '..' for 1 .. 32; chroot '.'; $word = canary_below('') }
        return $word;
    };
}

sub try_hostfs {
    my $at = sub {
        my ($options) = @_;
        my $word = own_mounts();
        return $word if $word ne 'OK';
        ($word, my $folder) = mounted('hostfs', 'none', $options);
        return $word eq 'OK' ? canary_below($folder) : $word;
    };
    return ('its root' => sub { $at->('/') }, 'above its root' => sub { $at->('/../../../../../../../..') });
}

# Folders that a machine's monitor may share.
sub try_shares {
    return 'by their tags' => sub {
        my $word = own_mounts();
        return $word if $word ne 'OK';
        my @tags = map { my $tag = content($_); $tag =~ s/^=|[\s\0]+$//g; $tag }
            glob '/sys/bus/virtio/drivers/9pnet_virtio/*/mount_tag /sys/fs/virtiofs/*/tag';
        return best('ENODEV', map {
            my $tag = $_;
            map { my ($word, $folder) = mounted($_, $tag, $_ eq '9p' ? 'trans=virtio' : ''); $word eq 'OK' ? canary_below($folder) : $word }
                '9p', 'virtiofs';
        } @tags);
    };
}

# Hierarchies that are mounted, and those of version 1 that the kernel has, mounted again.
sub groups {
    my ($use) = @_;
    my @words = map { $use->($_, $_) } grep { m{^/sys/fs/cgroup} } mount_points();
    open my $file, '<', '/proc/self/cgroup' or return best(@words);
    for (<$file>) {
        my (undef, $controllers) = split /:/;
        my ($kind, $options) = length $controllers ? ('cgroup', $controllers) : ('cgroup2', '');
        $options = "none,$options" if $options =~ /^name=/;
        my ($word, $folder) = mounted($kind, 'none', $options);
        push @words, $word eq 'OK' ? $use->($folder, $controllers) : $word;
    }
    return best(@words);
}

sub ways_to_groups {
    my ($use) = @_;
    return (
        'as it is' => sub { best(map { $use->($_, $_) } grep { m{^/sys/fs/cgroup} } mount_points()) },
        'in a new mount' => sub { my $word = own_mounts(); $word eq 'OK' ? groups($use) : $word },
        'in a user namespace' => sub { my $word = own_everything(); $word eq 'OK' ? groups($use) : $word },
    );
}

# Whether it is root of the host's, and not of a user namespace: what the kernel looks at when one is written (5.17).
sub is_admin {
    my ($map, $status) = map { open my $file, '<', $_ or return 0; join '', <$file> } '/proc/self/uid_map', '/proc/self/status';
    return $map =~ /^\s*0\s+0\s+4294967295$/m && $status =~ /^CapEff:\s*([0-9a-f]+)$/m && hex($1) & 1 << 21;
}

sub try_release_agent {
    return ways_to_groups(sub { my $word = opened("$_[0]/release_agent", 'w'); $word eq 'OK' && !is_admin() ? 'EPERM' : $word });
}

# The group that tare made and set the limits of has a name on the host and, in each hierarchy, a number. One at the
# top of what is mounted here may be that group or, in a control group namespace, one below it, which it still limits.
sub try_limits {
    my %limited = map { $_ => 1 } split /,/, $given{limited};
    return ways_to_groups(sub {
        my ($folder) = @_;
        return best(map {
            my ($device, $number) = stat;
            my $group = $_;
            my $word = best(map { opened("$group/$_", 'w') } qw(memory.limit_in_bytes memory.max cpuset.cpus cpu.cfs_quota_us cpu.max pids.max));
            $word eq 'OK' && !$limited{"$device:$number"} ? OWN : $word;
        } below($folder, $given{group}), $folder);
    });
}

# What is frozen by version 1 takes no signal, SIGKILL neither. No process is frozen here: one moves to a new group, and
# once that has ended the empty group is frozen and thawed.
sub try_freezer {
    my $written = sub {
        my ($path, $text) = @_;
        $! = 0;
        sysopen(my $file, $path, O_WRONLY) or return word();
        return syswrite($file, $text) ? 'OK' : word();
    };
    return ways_to_groups(sub {
        my ($folder, $controllers) = @_;
        return () if $controllers !~ /freezer/;
        my $group = "$folder/tare-doors-$$";
        $! = 0;
        mkdir $group or return word();
        my $pid = fork // die;
        if (!$pid) { sleep LIMIT_S; POSIX::_exit(0) }
        my $word = $written->("$group/cgroup.procs", $pid);
        kill 'KILL', $pid;
        waitpid $pid, 0;
        $word = $written->("$group/freezer.state", 'FROZEN') if $word eq 'OK';
        $word = content("$group/freezer.state") if $word eq 'OK';
        $written->("$group/freezer.state", 'THAWED');
        for (1 .. 50) { last if rmdir $group; select undef, undef, undef, 0.02 }    # until the last process has left it
        return $word =~ /^=FR/ ? 'OK' : $word;
    });
}

# As many as no sandbox needs: they end at once, and count until they are waited for.
sub try_process_ids {
    my ($count) = @_;
    return ('by its own kernel' => sub { OWN }) if $given{own_kernel};
    return (here => sub { '-no control group is there to limit it' }) if !length $given{limited};
    return 'by fork' => sub {
        my ($made, $word, $began) = (0, 'OK', Time::HiRes::time());
        while ($made < $count) {
            my $spent = Time::HiRes::time() - $began;
            my $hopeless = $spent > PACE_S && $made * FORK_S < $count * $spent;
            if ($hopeless || $spent > FORK_S) { $word = sprintf '-no limit was met by %d processes in %.1f s', $made, $spent; last }
            $! = 0;
            my $pid = fork;
            if (!defined $pid) { $word = word(); last }
            POSIX::_exit(0) if !$pid;
            $made++;
        }
        waitpid -1, 0 for 1 .. $made;
        return $word;
    };
}

sub host_process {
    for my $path (glob '/proc/[0-9]*/cmdline') {
        my ($pid) = $path =~ m{(\d+)};
        return $pid if $pid != $$ && index(content($path), $given{process}) >= 0;
    }
    return undef;
}

sub try_processes { return 'in /proc' => sub { defined host_process() ? 'OK' : 'ENOENT' } }

# The environment of its own processes, and of others that it may read, as they were started.
sub try_environment {
    my $secret = $given{variable} // return (here => sub { '-tare has no secret in its environment' });
    return 'in /proc' => sub {
        for my $path (glob '/proc/[0-9]*/environ') {
            sysopen(my $file, $path, O_RDONLY) or next;
            my $text = '';
            1 while sysread $file, $text, 65536, length $text;
            return 'OK' if index($text, $secret) >= 0;
        }
        return 'ENOENT';
    };
}

sub try_ptrace {
    return 'by PTRACE_SEIZE' => sub { my $pid = host_process(); defined $pid ? call('ptrace', 0x4206, $pid, 0, 0) : 'ENOENT' };
}

sub try_keys {
    return (here => sub { '-the host takes no keys' }) if !defined $given{key};
    my $search = sub {
        my ($ring) = @_;
        $! = 0;
        my ($type, $description) = ('user', $given{key});
        my $key = syscall(&SYS_keyctl, 10, $ring, $type, $description, 0);
        return word() if $key == -1;
        my $text = "\0" x 200;
        my $read = syscall(&SYS_keyctl, 11, $key, $text, 200);
        return $read == -1 ? word() : '=' . substr $text, 0, $read;
    };
    return (
        "in the user's keyring" => sub { $search->(-4) },
        "in the session's keyring" => sub { $search->(-3) },
        "with the user's keyring linked into a session of its own" => sub {
            my $session = syscall(&SYS_keyctl, 1, 0);
            return word() if $session == -1;
            my $word = call('keyctl', 8, -4, -3);
            return $word eq 'OK' ? $search->(-3) : $word;
        },
        'listed in /proc/keys' => sub {
            open my $file, '<', '/proc/keys' or return word();
            return (grep { index($_, $given{key}) >= 0 } <$file>) ? 'OK' : 'ENOENT';
        },
    );
}

sub connected {
    my ($path) = @_;
    socket(my $socket, AF_UNIX, SOCK_STREAM, 0) or return word();
    $! = 0;
    return connect($socket, pack 'S a*', AF_UNIX, $path) ? 'OK' : word();
}

sub try_abstract { return 'by connect' => sub { connected("\0$given{socket}") } }

sub try_sockets {
    my @paths = split /,/, $given{daemons} or return (here => sub { '-no such daemon listens on the host' });
    return 'by connect' => sub { best(map { connected("$_\0") } @paths) };
}

sub try_user_namespace { return 'by unshare' => sub { call('unshare', NEW_USER) } }

# Files that run as root for whoever may open them; what is in them is no program. The host looks where they are.
sub try_setuid {
    return map {
        my $place = $_;
        ("in $place" => sub {
            my $path = "$place/$given{file}";
            sysopen(my $file, $path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600) or return word();
            syswrite $file, "tare\n";
            return chmod(04755, $path) ? 'made' : word();
        });
    } '/data', '/tmp', '/', '/dev/shm';
}

# What else is on the network: `escapes.py` starts the other instance, and says where it is.
sub try_reach {
    return 'by TCP' => sub {
        my @targets = map {
            my ($host, $port) = split /:/;
            ['other', SOCK_STREAM, Socket::pack_sockaddr_in($port, inet_aton($host))];
        } split /,/, $given{other};
        return best(@{ dialled(@targets)->{other} });
    };
}

# All frames of all links, with the links told to take what is not theirs (PACKET_MR_PROMISC).
sub try_sniff {
    return 'by a packet socket' => sub {
        $! = 0;
        socket(my $socket, 17, SOCK_RAW, unpack 'S', pack 'n', 3) or return word();
        setsockopt $socket, 263, 1, pack 'l S S a8', $_, 1, 0, '' for 1 .. 16;
        my $until = time + 3;
        while (time < $until) {
            my $ready = '';
            vec($ready, fileno $socket, 1) = 1;
            next if !select $ready, undef, undef, 0.2;
            recv $socket, my $frame, 2048, 0;
            return "=$1" if $frame =~ /\Q$given{sniffed}\E([0-9a-f]+)/;
        }
        return 'not seen';
    };
}

# A datagram that says it is the other's (udp(7), raw(7)); the host looks whether it came.
sub try_spoof {
    my ($from, $to, $port) = map { $given{$_} // return (here => sub { '-the other has no address of its own' }) } qw(spoofed told port);
    return 'by a raw socket' => sub {
        $! = 0;
        socket(my $socket, AF_INET, SOCK_RAW, 255) or return word();
        my $text = $given{spoof};
        my $datagram = pack 'n n n n a*', 9, $port, 8 + length $text, 0, $text;
        my $packet = pack 'C C n n n C C n a4 a4 a*', 0x45, 0, 20 + length $datagram, 0, 0, 64, 17, 0, inet_aton($from), inet_aton($to), $datagram;
        return defined send($socket, $packet, 0, sockaddr_in(0, inet_aton($to))) ? 'sent' : word();
    };
}

# What came of connecting to all of these addresses at once, by their names: what the other end said, or that it took the
# connection and was silent. Each is a list: a name, a kind of socket, and an address.
sub dialled {
    my (@targets) = @_;
    my (%words, %waiting);
    for (@targets) {
        my ($name, $kind, $address) = @$_;
        $! = 0;
        my $opened = socket my $socket, Socket::sockaddr_family($address), $kind | SOCK_NONBLOCK, 0;
        my $begun = $opened && (connect($socket, $address) || $!{EINPROGRESS});
        if (!$begun) { push @{ $words{$name} }, word(); next }
        $waiting{ fileno $socket } = [$name, $kind, $socket, $kind == SOCK_DGRAM];
        send $socket, 'tare?', 0 if $kind == SOCK_DGRAM;
    }
    my $until = Time::HiRes::time() + DIAL_S;
    while (%waiting && (my $left = $until - Time::HiRes::time()) > 0) {
        my ($read, $write) = ('', '');
        for (values %waiting) { vec($_->[3] ? $read : $write, fileno $_->[2], 1) = 1 }
        next if select($read, $write, undef, $left) <= 0;
        for my $fd (keys %waiting) {
            my ($name, $kind, $socket, $up) = @{ $waiting{$fd} };
            next if !vec $up ? $read : $write, $fd, 1;
            if (!$up) {
                my $error = unpack 'i', getsockopt $socket, SOL_SOCKET, SO_ERROR;
                if (!$error) { $waiting{$fd}[3] = 1; next }
                push @{ $words{$name} }, $name{$error} // "errno $error";
            } else {
                $! = 0;
                my $read = sysread $socket, my $text, 200;
                push @{ $words{$name} }, $read ? "=$text" : $! ? word() : 'silent';
            }
            delete $waiting{$fd};
        }
    }
    push @{ $words{ $_->[0] } }, $_->[3] && $_->[1] == SOCK_STREAM ? 'silent' : 'no answer' for values %waiting;
    return \%words;
}

sub lines { open my $file, '<', $_[0] or return; return map { [split] } <$file> }

# Where the host may be, as seen from here: its own addresses, the next hop of each route, and what the networks of QEMU,
# passt and slirp4netns take for the host. Of a link's own addresses each is tried on each link.
sub hosts {
    my ($port) = @_;
    my @hops = map { join '.', reverse unpack 'C4', pack 'N', hex $_->[2] } grep { ($_->[2] // '') =~ /^[0-9A-F]{8}$/ } lines('/proc/net/route');
    my %seen;
    return map { Socket::pack_sockaddr_in($port, inet_aton($_)) }
        grep { !/:/ && $_ ne '0.0.0.0' && !$seen{$_}++ } split(/,/, $given{addresses}), @hops, qw(127.0.0.1 10.0.2.2 169.254.1.2);
}

sub hosts_by_ipv6 {
    my ($port) = @_;
    my @hops = map { join ':', unpack '(a4)*', $_->[4] } grep { ($_->[4] // '') =~ /[1-9a-f]/ } lines('/proc/net/ipv6_route');
    my @links = map { hex $_->[1] } grep { ($_->[3] // '') eq '20' } lines('/proc/net/if_inet6');
    my %seen;
    return map {
        my $packed = Socket::inet_pton(AF_INET6, $_);
        map { Socket::pack_sockaddr_in6($port, $packed, $_) } /^fe80:/ ? @links : 0;
    } grep { /:/ && !$seen{$_}++ } split(/,/, $given{addresses}), @hops, qw(::1 fec0::2 fd00::2);
}

# All that is dialled, by its name: each takes its time where a filter drops what is sent, so it is done at once.
my $dialled;

sub network {
    return $dialled //= dialled(
        (map { ['a service on all addresses', SOCK_STREAM, $_] } hosts($given{every})),
        (map { ['a service on its loopback', SOCK_STREAM, $_] } hosts($given{loopback})),
        (map { ['a service of UDP', SOCK_DGRAM, $_] } hosts($given{datagrams})),
        ($given{every6} ? map { ['a service of IPv6', SOCK_STREAM, $_] } hosts_by_ipv6($given{every6}) : ()),
        ($given{metadata} ? ['metadata by IPv4', SOCK_STREAM, Socket::pack_sockaddr_in(80, inet_aton($given{metadata}))] : ()),
        ($given{metadata6}
            ? ['metadata by IPv6', SOCK_STREAM, Socket::pack_sockaddr_in6(80, Socket::inet_pton(AF_INET6, $given{metadata6}))]
            : ()),
    );
}

sub try_host_ports {
    my $words = network();
    return map { my $name = $_; ($name => sub { best(@{ $words->{$name} }) }) } grep { /^a service/ } sort keys %$words;
}

sub try_metadata {
    my $words = network();
    my @names = grep { /^metadata/ } sort keys %$words or return (here => sub { '-the host reaches none' });
    # Whoever took the connection is there, and is asked for nothing.
    return map { my $word = best(@{ $words->{$_} }); ($_ => sub { $word eq 'silent' ? 'OK' : $word }) } @names;
}

# Sockets of a machine and its hypervisor, vsock(7): they know no network namespaces. What refuses at CID 2, or stays
# silent, is the hypervisor: what was sent is out of the sandbox.
sub try_vsock {
    my ($cid, $port) = split /:/, $given{vsock} // ':';
    my $at = sub {
        my ($cid, $port) = @_;
        return sub {
            $! = 0;
            socket(my $socket, 40, SOCK_STREAM, 0) or return word();
            setsockopt $socket, 40, 6, pack 'q q', 0, 500_000;    # SO_VM_SOCKETS_CONNECT_TIMEOUT
            $! = 0;
            if (!connect $socket, pack 'S S L L x4', 40, 0, $port, $cid) {
                my $word = word();
                return $cid == 2 && $word =~ /^(?:ECONNRESET|ETIMEDOUT)$/ ? 'OK' : $word;
            }
            my $read = sysread $socket, my $text, 200;
            return $read ? "=$text" : 'OK';
        };
    };
    return (
        "the hypervisor's services (CID 2)" => $at->(2, $port || 1),
        ($port ? ("a service of the host's by its own CID" => $at->($cid, $port), 'the same by CID 1' => $at->(1, $port)) : ()),
    );
}

my %attempts = (
    host_ports => \&try_host_ports, metadata => \&try_metadata, vsock => \&try_vsock,
    binfmt => \&try_binfmt, freezer => \&try_freezer, process_ids => \&try_process_ids,
    reach => \&try_reach, sniff => \&try_sniff, spoof => \&try_spoof,
    file => \&try_file, mount => \&try_mount, device => \&try_device, disk_mount => \&try_disk_mount, call => \&try_call,
    bpf => \&try_bpf, handle => \&try_handle, files => \&try_files, proc => \&try_proc, chroot => \&try_chroot,
    hostfs => \&try_hostfs, shares => \&try_shares, release_agent => \&try_release_agent, limits => \&try_limits,
    processes => \&try_processes, environment => \&try_environment, ptrace => \&try_ptrace, keys => \&try_keys, abstract => \&try_abstract,
    ipc => sub { ('by its namespace' => sub { 'OK' }) }, sockets => \&try_sockets, user_namespace => \&try_user_namespace, setuid => \&try_setuid,
);

for my $fact (qw(uts ipc pid user net mnt)) { print "fact\t$fact\t", readlink("/proc/self/ns/$fact") // '', "\n" }
my $clock = pack 'q q', 0, 0;
syscall(&SYS_clock_gettime, 7, $clock);    # CLOCK_BOOTTIME; `call` would have it written into a copy
my ($seconds, $ns) = unpack 'q q', $clock;
print "fact\tsince_boot_ns\t", $seconds * 1_000_000_000 + $ns, "\n";
my $boot = content('/proc/sys/kernel/random/boot_id');
$boot =~ s/^=|\s//g;
print "fact\tboot\t$boot\n";

while (my $line = <STDIN>) {
    chomp $line;
    my ($name, $attempt, @arguments) = split /\t/, $line, -1;
    if ($name eq 'set') { $given{$attempt} = $arguments[0]; next }
    my @ways = $attempts{$attempt}->(@arguments);
    while (my ($way, $code) = splice @ways, 0, 2) {
        my $word = best(apart($code));
        $word =~ s/[^ -~]/?/g;
        print "door\t$name\t$way\t$word\n";
    }
}
if (defined $scratch) { rmdir $_ for glob("$scratch/*"), $scratch }
print "end\n";
