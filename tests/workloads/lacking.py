"""What platforms cannot run, and a part of the reason that they give, by workload and platform."""

_CACHED = "direct I/O goes through the host's page cache all the same"
_REFUSED = "its filesystem does not support direct I/O"
LACKING = {
    ("fio-randread", "gvisor"): _CACHED,
    ("fio-randwrite", "gvisor"): _CACHED,
    ("fio-randread-32", "gvisor"): _CACHED,
    ("fio-randread", "uml"): _REFUSED,
    ("fio-randread-32", "uml"): _REFUSED,
    ("fio-randwrite", "uml"): _REFUSED,
    ("seq-read-sizes-guest", "gvisor"): "its kernel has no /proc/sys/vm/drop_caches",
}
#: Where it is a race whether they can, by the same.
RACING = {
    (f"dbench{kind}", "gvisor"): "too late for its semaphore"
    for kind in ("", "-fsync", "-osync", "-root", "-fsync-root", "-osync-root")
}
