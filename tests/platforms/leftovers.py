"""What is on the host and carries a label of tare's."""

from pathlib import Path

from tare.host import processes, state


def left_on_host(label):
    """All on the host that carries the label."""
    found = [line for line in Path("/proc/mounts").read_text().splitlines() if label in line]
    found += [one.name for one in Path("/sys/class/net").iterdir() if label in one.name]
    found += [one.name for one in Path("/run/netns").glob("*") if label in one.name]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/tare/*{label}*")]
    found += [str(path) for path in state.work().glob(f"*{label}*")]
    found += [str(path) for path in Path("/run/lxc/lock").glob(f".*{label}*")]
    found += [str(path) for path in Path("/run/systemd/nspawn").glob(f"*/*{label}*")]
    found += processes.run(["docker", "ps", "-aq", "--filter", f"name={label}"]).text.split()
    if processes.find("podman"):
        found += processes.run(["podman", "ps", "-aq", "--filter", f"name={label}"]).text.split()
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if label.encode() in cmdline.read_bytes():
                found.append(str(cmdline))
        except OSError:
            continue
    return found
