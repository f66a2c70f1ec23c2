# Harmless where it comes through: files are opened and not written, nothing is mounted. The control runs it as the host's root.
# What a hostile guest or a server that has taken over a client's program tries. A line for each order on standard input,
# "KIND ARGUMENT..."; prints "KIND<tab>ARGUMENT<tab>EVIDENCE" for each way that is open, "KIND<tab><tab>tried" at its end.
use strict; use warnings; use Socket qw(:all); use POSIX (); use Errno;
$| = 1;

sub said { print join("\t", map { s/[^ -~]/?/gr } @_), "\n" }

# The targets, with each next hop of this network's in place of the word "gateway".
sub hops {
    my @hops;
    if (open my $in, "<", "/proc/net/route") {
        <$in>;
        while (<$in>) { my $hop = (split)[2]; push @hops, join ".", reverse unpack "C4", pack "H8", $hop if $hop ne "00000000" }
    }
    return map { my $target = $_; /^gateway:/ ? map { $target =~ s/^gateway/$_/r } @hops : $_ } @_;
}

# Connects to all at once, and asks whoever takes the connection for what it says.
sub reach {
    my %open;
    for my $target (hops(@_)) {
        my ($host, $port) = $target =~ /^\[?([^\]]+?)\]?:(\d+)$/ or next;
        my $six = $host =~ /:/;
        socket(my $socket, $six ? PF_INET6 : PF_INET, SOCK_STREAM, 0) or next;
        my ($address, $scope) = split /%/, $host;
        my $packed = inet_pton($six ? AF_INET6 : AF_INET, $address) // next;
        fcntl($socket, 4, 2048);    # F_SETFL, O_NONBLOCK
        my $to = $six ? pack_sockaddr_in6($port, $packed) : pack_sockaddr_in($port, $packed);
        connect($socket, $to) or $!{EINPROGRESS} or next;
        $open{$target} = $socket;
    }
    my $end = time + 4;
    my (%connected, %words);
    while (%open and time < $end) {
        my ($write, $read) = ('', '');
        vec($connected{$_} ? $read : $write, fileno $open{$_}, 1) = 1 for keys %open;
        select(my $readable = $read, my $writable = $write, undef, 0.5);
        for my $target (keys %open) {
            my $number = fileno $open{$target};
            if (!$connected{$target} and vec($writable, $number, 1)) {
                my $error = unpack "i", getsockopt($open{$target}, SOL_SOCKET, SO_ERROR);
                if ($error) { delete $open{$target} } else { $connected{$target} = 1 }
            }
            elsif ($connected{$target} and vec($readable, $number, 1)) {
                sysread $open{$target}, $words{$target}, 64;
                delete $open{$target};
            }
        }
    }
    said("reach", $_, "it answers" . (defined $words{$_} ? ": $words{$_}" : "")) for sort keys %connected;
}

# Sends datagrams to each, also as broadcasts: whoever listens says on the host that they came.
sub datagram {
    my ($word, @targets) = @_;
    for my $target (hops(@targets)) {
        my ($host, $port) = split /:/, $target;
        socket(my $socket, PF_INET, SOCK_DGRAM, 0) or next;
        setsockopt($socket, SOL_SOCKET, SO_BROADCAST, 1);
        send($socket, "$word $target", 0, pack_sockaddr_in($port, inet_aton($host))) for 1 .. 3;
    }
}

# A variable's value in the environments that are to be seen.
sub environment {
    my ($value) = @_;
    for my $file (glob "/proc/[0-9]*/environ") {
        open my $in, "<", $file or next;
        local $/;
        my $all = <$in> // "";
        said("environment", $file, "has it") if index($all, $value) >= 0;
    }
}

# A refusal of the hypervisor's, or its silence, comes from outside of the sandbox.
sub vsock {
    my ($port) = @_;
    for my $cid (2, 1) {
        if (!socket(my $socket, 40, SOCK_STREAM, 0)) { said("no-vsock", $cid, "$!"); last }
        else {
            setsockopt($socket, 40, 6, pack "qq", 3, 0);    # SO_VM_SOCKETS_CONNECT_TIMEOUT, of three seconds
            my $done = connect($socket, pack "SSLLx4", 40, 0, $port, $cid);
            my $error = "$!";
            said("vsock", "CID $cid", $done ? "connected" : $error)
                if $done or $!{ECONNRESET} or $!{ETIMEDOUT} or $!{ECONNREFUSED};
        }
    }
}

# As many processes as there may be, up to a number, and for ten seconds each that becomes free; they end at once afterwards.
sub fork_many {
    my ($most) = @_;
    pipe(my $wait, my $end) or return;
    my ($made, $refused, @pids) = (0, 0);
    my $late = time + 100;
    while ($made < $most and time < $late) {
        my $pid = fork;
        if (!defined $pid) {
            $refused ||= time;
            last if time > $refused + 10;
            select undef, undef, undef, 0.002;
            next;
        }
        if (!$pid) { close $end; sysread $wait, my $nothing, 1; POSIX::_exit(0) }
        push @pids, $pid;
        $made++;
    }
    my $why = $made < $most ? (time < $late ? "$!" : "too slow") : "";
    close $end;
    waitpid $_, 0 for @pids;
    said("forked", $made, $why || "no end");
}

# What a program has of rights, and what it sees.
sub rights {
    open my $in, "<", "/proc/self/status" or return said("rights", "/proc/self/status", "is not there");
    my %status = map { /^(\w+):\s*(.*)$/ ? ($1, $2) : () } <$in>;
    said("rights", "user", "0") if (split " ", $status{Uid})[1] eq "0";
    said("rights", $_, $status{$_}) for grep { $status{$_} =~ /[^0]/ } qw(CapInh CapPrm CapEff CapBnd CapAmb);
    said("rights", "NoNewPrivs", "0") if !$status{NoNewPrivs};
    my @seen = grep { open my $file, "<", "/proc/$_/cmdline" } map { m{(\d+)} } glob "/proc/[0-9]*";
    said("rights", "processes", scalar @seen) if @seen > 3;
    for my $kind ([PF_INET, SOCK_RAW, 255, "raw IP"], [17, SOCK_RAW, 0x0300, "raw frames"]) {
        said("rights", "socket", $kind->[3]) if socket my $socket, $kind->[0], $kind->[1], $kind->[2];
    }
    for my $file (glob "/dev/* /dev/*/*") {
        said("rights", $file, "is a device") if (-b $file or -c $file) and $file !~ m{^/dev/(null|zero|full|random|urandom)$};
    }
    for my $file (qw(/etc/shadow /etc/passwd /usr/bin/env /sys/kernel/uevent_helper /proc/sys/kernel/core_pattern)) {
        said("rights", $file, "can be written") if open my $out, ">>", $file;
    }
    said("rights", "setuid", "a user again") if POSIX::setuid(0);
    # In a process of its own, which ends: who may make a mount namespace may mount. Nothing is mounted.
    my $child = fork // return;
    POSIX::_exit(syscall(272, 0x20000) == 0 ? 1 : 0) if !$child;    # unshare(CLONE_NEWNS), of x86-64
    waitpid $child, 0;
    said("rights", "mount namespace", "made") if $? >> 8;
}

my %ways = (
    reach => \&reach, datagram => \&datagram, environment => \&environment, vsock => \&vsock, fork => \&fork_many,
    rights => \&rights,
);
while (my $order = <STDIN>) {
    my ($kind, @arguments) = split " ", $order;
    $ways{$kind}->(@arguments);
    said($kind, "", "tried");
}
