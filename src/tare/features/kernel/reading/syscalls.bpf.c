// SPDX-License-Identifier: GPL-2.0
// Counts the system calls that the kernel is asked for: everybody's, and those of one control group and all below it.
//
// Counters are in an array, one slice a CPU, that the harness maps and reads: there is no buffer that could be full, and
// reading it is no system call. The kernel lets a program with a GPL licence alone use the helpers that are used here.
#include "instance.bpf.h"

// The same in syscalls.py.
#define NUMBERS 1024 // a power of two; the last one is for all numbers that are higher
#define SCOPES 2     // the host's, the instance's
#define ABIS 2       // 64 bits, 32 bits

// arch/x86/include/asm/thread_info.h: the task is in a system call of the 32-bit kind.
#define TS_COMPAT 2

struct slice {
    __u64 count[SCOPES][ABIS][NUMBERS];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1); // as many as there are CPUs: set before it is loaded
    __type(key, __u32);
    __type(value, struct slice);
} counts SEC(".maps");

SEC("tp_btf/sys_enter")
int count_call(__u64 *context)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct instance *one = the_instance();
    __u32 cpu = bpf_get_smp_processor_id();
    struct slice *mine = bpf_map_lookup_elem(&counts, &cpu);
    __u64 number = context[1];
    if (!mine || !one)
        return 0;
    if (number >= NUMBERS)
        number = NUMBERS - 1;
    number &= NUMBERS - 1; // the same, as the verifier understands it
    __u32 abi = task->thread_info.status & TS_COMPAT ? 1 : 0;
    __sync_fetch_and_add(&mine->count[0][abi][number], 1);
    if (one->id && within(task, one->id))
        __sync_fetch_and_add(&mine->count[1][abi][number], 1);
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
