"""Folders that look like a machine's ``/proc`` and ``/sys``: this project's build machine as captured, and others."""

from pathlib import Path

CAPTURED = Path(__file__).parent / "data" / "settings"

#: A laptop on bare metal with Intel's driver, hyper-threads, swap in use and everything that follows the load.
LAPTOP = {
    "sys/devices/system/cpu/online": "0-3",
    "sys/devices/system/cpu/smt/active": "1",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    **{f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor": "powersave" for cpu in range(4)},
    **{
        f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_available_governors": "performance powersave"
        for cpu in range(4)
    },
    **{
        f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}" for cpu in range(4)
    },
    **{f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id": "0" for cpu in range(4)},
    "sys/devices/system/cpu/vulnerabilities/meltdown": "Mitigation: PTI",
    "sys/devices/system/cpu/vulnerabilities/spectre_v2": "Mitigation: Enhanced / Automatic IBRS",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "sys/kernel/mm/ksm/run": "1",
    "proc/sys/vm/swappiness": "60",
    "proc/sys/kernel/randomize_va_space": "0",
    "proc/sys/kernel/numa_balancing": "1",
    "proc/sys/kernel/nmi_watchdog": "1",
    "proc/sys/kernel/timer_migration": "1",
    "proc/irq/8/smp_affinity_list": "0-3",
    "proc/irq/9/smp_affinity_list": "0-1",
    "proc/irq/120/smp_affinity_list": "2",
}

#: A server with two sockets of four cores of two threads, numbered as Linux does on a Dell PowerEdge R710: sockets in
#: turn, second threads last, and core numbers that begin anew on each socket.
TWO_SOCKETS = {
    "proc/cpuinfo": "model name\t: Intel(R) Xeon(R) CPU E5540\nflags\t\t: fpu ht vmx",
    "sys/devices/system/cpu/online": "0-15",
    "sys/devices/system/cpu/smt/active": "1",
    **{
        f"sys/devices/system/cpu/cpu{cpu}/topology/{name}": text
        for cpu in range(16)
        for name, text in {
            "thread_siblings_list": f"{cpu % 8},{cpu % 8 + 8}",
            "core_id": f"{cpu % 8 // 2}",
            "physical_package_id": f"{cpu % 2}",
        }.items()
    },
}

#: A server with AMD's driver, where an administrator did the tuning already.
SERVER = {
    "sys/devices/system/cpu/online": "0-1",
    "sys/devices/system/cpu/smt/active": "0",
    "sys/devices/system/cpu/cpufreq/boost": "0",
    **{f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor": "performance" for cpu in range(2)},
    "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
    "sys/kernel/mm/ksm/run": "0",
    "proc/sys/vm/swappiness": "0",
    "proc/sys/kernel/randomize_va_space": "2",
    "proc/sys/kernel/numa_balancing": "0",
    "proc/sys/kernel/nmi_watchdog": "0",
    "proc/sys/kernel/timer_migration": "0",
    "proc/irq/8/smp_affinity_list": "0",
}


#: A guest of KVM with two CPUs, whose hypervisor says nothing of which threads share a core.
HIDDEN = {
    "proc/cpuinfo": "model name\t: Intel(R) Xeon(R) Processor\nflags\t\t: fpu ht hypervisor",
    "sys/devices/system/cpu/online": "0-1",
    "sys/devices/system/cpu/smt/active": "0",
    **{f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu}" for cpu in range(2)},
    **{f"sys/devices/system/cpu/cpu{cpu}/topology/core_id": f"{cpu}" for cpu in range(2)},
}


def captured() -> dict[str, str]:
    """The texts of `CAPTURED` by path: a Firecracker guest with two CPUs, no frequency driver and kernel 6.18."""
    return dict(line.split(":", 1) for line in CAPTURED.read_text().splitlines())


def write(root: Path, texts: dict[str, str]) -> Path:
    """A folder with these files in it."""
    for path, text in texts.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return root


def write_process(proc: Path, pid: int, parent: int, *argv: str, state: str = "S", name: str = "sh") -> None:
    """A process's files in a folder that looks like ``/proc``; the line of numbers is a real one's, shortened."""
    numbers = "4194304 1100 24 0 0 0 0 0 0 20 0 1 0 2460412 5799936 465"
    texts = {"stat": f"{pid} ({name}) {state} {parent} {pid} {pid} 0 -1 {numbers}", "comm": name}
    write(proc, {f"{pid}/{file}": text for file, text in texts.items()})
    (proc / str(pid) / "cmdline").write_bytes("".join(f"{word}\0" for word in argv).encode())
