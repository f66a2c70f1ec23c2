// SPDX-License-Identifier: GPL-2.0
// Counts the paths by which CPUs are found in the kernel when a clock ticks, by process: everybody's, and those of one
// control group and all below it.
//
// A path is counted where it is found. What the kernel has for that (a map of stacks) keeps them by a hash and throws
// away those that collide; here the whole path is the key, and nothing is lost but what finds the map full.
#include "instance.bpf.h"

// The same in stack_sampler.py.
#define FRAMES 127 // as many as the kernel gives (kernel.perf_event_max_stack)
#define COMM 16
#define ENTRIES 16384 // different paths between two readings; those of a busy host are some thousands
#define PERIOD 1003009 // nanoseconds between two ticks
#define IN_USER 0
#define IN_KERNEL 1
#define IN_GUEST 2

// include/linux/sched.h, since Linux 5.12: the task is a virtual machine's CPU, and the machine runs.
#define PF_VCPU 1

struct path {
    __u32 mode;
    __u16 inside; // the group
    __u16 idle;
    char comm[COMM]; // of the process
    __u32 number;    // its own, where its name tells nothing
    __u32 unused;
    __u64 frames[FRAMES]; // the innermost first, then zeros
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, ENTRIES);
    __type(key, struct path);
    __type(value, __u64);
} paths SEC(".maps");

struct tally {
    __u64 last;  // when the last tick came, in nanoseconds
    __u64 since; // when this CPU had no more work; 0: it has some
    __u64 idle;  // nanoseconds without work since the last tick
    __u64 lost;  // samples of work
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1); // as many as there are CPUs: set before it is loaded
    __type(key, __u32);
    __type(value, struct tally);
} tallies SEC(".maps");

// A path is too long for a program's stack.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct path);
} scratches SEC(".maps");

static __always_inline struct tally *my_tally(void)
{
    __u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&tallies, &cpu);
}

// How many ticks did not come since the last one though they were due and there was work: the hypervisor had taken the
// CPU away, or interrupts were off. A CPU without work may have its clock stopped, and nothing is lost then.
static __always_inline __u64 missing(struct tally *tally)
{
    __u64 now = bpf_ktime_get_ns(), work = 0, idle = tally->idle;
    if (tally->since) {
        idle += now - tally->since;
        tally->since = now;
    }
    if (tally->last && now - tally->last > idle)
        work = now - tally->last - idle;
    tally->last = now;
    tally->idle = 0;
    work = (work + PERIOD / 2) / PERIOD;
    return work > 1 ? work - 1 : 0;
}

// A CPU has no more work (the state that it rests in), or has some again (-1).
SEC("tp_btf/cpu_idle")
int note_idle(__u64 *context)
{
    struct tally *tally = my_tally();
    __u64 now = bpf_ktime_get_ns();
    if (!tally)
        return 0;
    if ((__u32)context[0] != (__u32)-1) {
        tally->since = now;
    } else if (tally->since) {
        tally->idle += now - tally->since;
        tally->since = 0;
    }
    return 0;
}

// What was started as /proc/self/exe is called exe: gVisor's sentry, and all that it starts.
static __always_inline int known_by_name(const char *comm)
{
    return comm[0] != 'e' || comm[1] != 'x' || comm[2] != 'e' || comm[3];
}

SEC("perf_event")
int sample_stack(void *context)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct instance *one = the_instance();
    __u32 only = 0;
    struct tally *tally = my_tally();
    struct path *path = bpf_map_lookup_elem(&scratches, &only);
    __u64 first = 1, *count;
    if (!tally || !path || !one)
        return 0;
    tally->lost += missing(tally);
    // Where a program of user mode was interrupted there is no kernel's stack.
    path->mode = bpf_get_stack(context, path->frames, sizeof(path->frames), 0) > 0 ? IN_KERNEL : IN_USER;
    if (path->mode == IN_USER)
        __builtin_memset(path->frames, 0, sizeof(path->frames));
    // Nor is there one for the kernel's tools where a guest was interrupted.
    if (task->flags & PF_VCPU)
        path->mode = IN_GUEST;
    path->inside = one->id && within(task, one->id);
    path->idle = task->pid == 0;
    bpf_probe_read_kernel(path->comm, sizeof(path->comm), task->group_leader->comm);
    path->number = known_by_name(path->comm) ? 0 : task->tgid;
    count = bpf_map_lookup_elem(&paths, path);
    if (!count && bpf_map_update_elem(&paths, path, &first, BPF_NOEXIST) == 0)
        return 0;
    if (!count)
        count = bpf_map_lookup_elem(&paths, path); // another CPU was faster
    if (count)
        __sync_fetch_and_add(count, 1);
    else
        tally->lost++;
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
