// SPDX-License-Identifier: GPL-2.0
// Which tasks are an instance's: those in one control group and all below it. Part of several programs here.
//
// The group is known by its path before it is there. The structures have only the fields that are read; libbpf finds
// their places in the running kernel (CO-RE).
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

// The same in instance.py.
#define PATH 256
// Most control groups between a task's own and the root.
#define DEEPEST 32

#define KERNEL __attribute__((preserve_access_index))

struct kernfs_node {
    __u64 id;
} KERNEL;

struct cgroup {
    struct kernfs_node *kn;
    struct cgroup_subsys_state *subsys[1];
} KERNEL;

struct cgroup_subsys_state {
    struct cgroup *cgroup;
    struct cgroup_subsys_state *parent;
} KERNEL;

struct css_set {
    struct cgroup_subsys_state *subsys[1];
} KERNEL;

struct thread_info {
    __u32 status;
} KERNEL;

struct task_struct {
    struct thread_info thread_info;
    __u32 flags;
    __s32 pid;
    __s32 tgid;
    struct task_struct *group_leader;
    char comm[16];
    struct css_set *cgroups;
} KERNEL;

enum cgroup_subsys_id { cpu_cgrp_id = 1 };

struct instance {
    __u64 id;        // of its control group, in the hierarchy that has the controller cpu; 0: it is not there yet
    char path[PATH]; // as the kernel writes it: /tare/...
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct instance);
} instances SEC(".maps");

static __always_inline struct instance *the_instance(void)
{
    __u32 only = 0;
    return bpf_map_lookup_elem(&instances, &only);
}

// Whether a task is in the group or below. With the controller's hierarchy this holds for cgroup v1 and v2 alike.
static __always_inline int within(struct task_struct *task, __u64 id)
{
    struct cgroup_subsys_state *css =
        task->cgroups->subsys[bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id)];
    for (int level = 0; level < DEEPEST && css; level++) {
        if (css->cgroup->kn->id == id)
            return 1;
        css = css->parent;
    }
    return 0;
}

// The group of an instance is known by its path before it is there.
SEC("tp_btf/cgroup_mkdir")
int find_group(__u64 *context)
{
    struct cgroup *made = (void *)context[0];
    struct instance *one = the_instance();
    char path[PATH] = {};
    if (!one || !made->subsys[bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id)])
        return 0; // of another hierarchy: numbers of groups are a hierarchy's own
    if (bpf_probe_read_kernel_str(path, sizeof(path), (void *)context[1]) < 0)
        return 0;
    for (int at = 0; at < PATH; at++) {
        if (path[at] != one->path[at])
            return 0;
        if (!path[at])
            break;
    }
    one->id = made->kn->id;
    return 0;
}
