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


def cpus(siblings: dict[int, str], **files: dict[int, str]) -> dict[str, str]:
    """The files of these CPUs: which threads share a core, and others by their path below a CPU's folder."""
    folder = "sys/devices/system/cpu"
    texts = {f"{folder}/cpu{cpu}/topology/thread_siblings_list": text for cpu, text in siblings.items()}
    for path, each in files.items():
        texts |= {f"{folder}/cpu{cpu}/{path.replace('__', '/')}": text for cpu, text in each.items()}
    return texts | {f"{folder}/online": f"0-{max(siblings)}", f"{folder}/isolated": "", f"{folder}/offline": ""}


#: A desktop with eight performance cores of two threads each and four efficiency cores; two cores are favoured.
I7_12700K = {
    "proc/cpuinfo": "model name\t: 12th Gen Intel(R) Core(TM) i7-12700K\nflags\t\t: fpu ht vmx",
    **cpus(
        {cpu: f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}" if cpu < 16 else f"{cpu}" for cpu in range(20)},
        cpufreq__cpuinfo_max_freq={
            cpu: "5000000" if cpu in range(8, 12) else "4900000" if cpu < 16 else "3800000" for cpu in range(20)
        },
    ),
    "sys/devices/cpu_core/cpus": "0-15",
    "sys/devices/cpu_atom/cpus": "16-19",
    "sys/devices/system/node/node0/cpulist": "0-19",
}
#: A laptop with four Zen 5 and eight Zen 5c cores of two threads each: only clock rates tell them apart.
RYZEN_STRIX = {
    "proc/cpuinfo": "model name\t: AMD Ryzen AI 9 HX 370 w/ Radeon 890M\nflags\t\t: fpu ht svm",
    **cpus(
        {cpu: f"{cpu % 12},{cpu % 12 + 12}" for cpu in range(24)},
        cpufreq__cpuinfo_max_freq={cpu: "5157895" if cpu % 12 < 4 else "3306000" for cpu in range(24)},
    ),
}
#: A board with four Cortex-A55 and four Cortex-A76: the slow ones come first.
RK3588 = {
    "proc/cpuinfo": "CPU implementer\t: 0x41\nCPU part\t: 0xd05",
    **cpus({cpu: f"{cpu}" for cpu in range(8)}, cpu_capacity={cpu: "530" if cpu < 4 else "1024" for cpu in range(8)}),
}
#: A server with two sockets of 64 cores of two threads each, a NUMA node each.
TWO_EPYC_7763 = {
    "proc/cpuinfo": "model name\t: AMD EPYC 7763 64-Core Processor\nflags\t\t: fpu ht svm",
    **cpus({cpu: f"{cpu % 128},{cpu % 128 + 128}" for cpu in range(256)}),
    "sys/devices/system/node/node0/cpulist": "0-63,128-191",
    "sys/devices/system/node/node1/cpulist": "64-127,192-255",
    "sys/devices/system/node/node2/cpulist": "",
}
#: A server that was booted with isolcpus=4-7.
ISOLATED = {
    "proc/cpuinfo": "model name\t: Intel(R) Xeon(R) E-2278G CPU @ 3.40GHz\nflags\t\t: fpu ht vmx",
    **cpus({cpu: f"{cpu}" for cpu in range(8)}),
    "sys/devices/system/cpu/isolated": "4-7",
}
#: A server whose second threads an administrator took offline.
THREADS_OFF = {
    "proc/cpuinfo": "model name\t: Intel(R) Xeon(R) Silver 4110 CPU @ 2.10GHz\nflags\t\t: fpu ht vmx",
    **cpus({cpu: f"{cpu}" for cpu in range(8)}),
    "sys/devices/system/cpu/offline": "8-15",
    "sys/devices/system/cpu/isolated": "(null)",
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
