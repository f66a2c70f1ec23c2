// SPDX-License-Identifier: GPL-2.0
/*
 * Counts how often each kernel function is entered, on the whole host and by one cgroup.
 *
 * Debian's kernel has ftrace but no function profiler, and a ring buffer loses events. So this counts in place: a
 * table of function addresses that all CPUs share, and two counters an address and CPU. Nothing is written anywhere
 * while it counts, so nothing is lost for want of a reader.
 *
 * It is used through two files in debugfs, below tare_fcount/:
 *   ctl   the lease. One process at a time has it open, and writes one word at a time to it: "on", "off", "hold",
 *         "go", "reset", "cgroup /PATH" (of cgroup v2; "cgroup" alone: of none). Closing it, by death too, switches
 *         all off: whatever becomes of the user, the kernel is not traced any longer than he lives.
 *   dump  one line a function that ran: address, hits, hits by the cgroup, symbol. "hold" first for a still picture.
 *
 * Addresses are taken as they come and named only when they are read, so neither the kernel's nor a module's place
 * matters, and KASLR does not.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cgroup.h>
#include <linux/debugfs.h>
#include <linux/ftrace.h>
#include <linux/hash.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/trace_recursion.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/local.h>

/* A kernel with all its modules has some 70,000 functions, so that at most half of the table fills. */
#define FCOUNT_BITS	17
#define FCOUNT_SLOTS	(1U << FCOUNT_BITS)
#define FCOUNT_PROBES	256
#define FCOUNT_COMMAND	(PATH_MAX + 16)

struct fcount_hits {
	local_t all;
	local_t group;
};

/* Where a function is in here, its counters are at the same place in every CPU's array. Never removed: see dump. */
static unsigned long *fcount_ips;
static DEFINE_PER_CPU(struct fcount_hits *, fcount_hits);
static DEFINE_PER_CPU(local_t, fcount_lost);

static bool fcount_counting;
static struct cgroup __rcu *fcount_group;

/* Guards all below, and what commands change. */
static DEFINE_MUTEX(fcount_lock);
static bool fcount_leased;
static bool fcount_registered;

static struct dentry *fcount_dir;

/* The place of an address, taken for it at its first hit; -1 when the table is full around there. */
static __always_inline int fcount_place(unsigned long ip)
{
	u32 at = hash_long(ip, FCOUNT_BITS);
	int probe;

	for (probe = 0; probe < FCOUNT_PROBES; probe++) {
		unsigned long found = READ_ONCE(fcount_ips[at]);

		if (!found)	/* what was there is returned: nothing, if it is now ours */
			found = cmpxchg(&fcount_ips[at], 0, ip) ?: ip;
		if (found == ip)
			return at;
		at = (at + 1) & (FCOUNT_SLOTS - 1);
	}
	return -1;
}

/* Interrupts run on the back of whichever task there is: their work is not that task's. */
static __always_inline bool fcount_by_group(void)
{
	struct cgroup *group = rcu_dereference_sched(fcount_group);

	return group && in_task() && task_under_cgroup_hierarchy(current, group);
}

/* Calls nothing that is traced; counters are added to by one instruction, so that an interrupt in between is fine. */
static void fcount_hit(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct fcount_hits *hits;
	int bit, at;

	if (!READ_ONCE(fcount_counting))
		return;
	bit = ftrace_test_recursion_trylock(ip, parent_ip);	/* without preemption, so in an RCU reader, until unlock */
	if (bit < 0) {
		local_inc(this_cpu_ptr(&fcount_lost));
		return;
	}
	at = fcount_place(ip);
	if (at < 0) {
		local_inc(this_cpu_ptr(&fcount_lost));
	} else {
		hits = this_cpu_read(fcount_hits) + at;
		local_inc(&hits->all);
		if (fcount_by_group())
			local_inc(&hits->group);
	}
	ftrace_test_recursion_unlock(bit);
}

/* Without a filter: all functions. */
static struct ftrace_ops fcount_ops = {
	.func = fcount_hit,
};

static void fcount_hold(void)
{
	WRITE_ONCE(fcount_counting, false);
	synchronize_rcu();	/* whoever is counting on another CPU is done */
}

static int fcount_on(void)
{
	int ret;

	if (!fcount_registered) {
		ret = register_ftrace_function(&fcount_ops);
		if (ret)
			return ret;
		fcount_registered = true;
	}
	WRITE_ONCE(fcount_counting, true);
	return 0;
}

static int fcount_off(void)
{
	int ret = 0;

	fcount_hold();
	if (fcount_registered) {
		ret = unregister_ftrace_function(&fcount_ops);
		fcount_registered = ret != 0;
	}
	return ret;
}

/* Addresses keep their places: a CPU may be about to count at one that it has just found. */
static int fcount_reset(void)
{
	bool counting = fcount_counting;
	int cpu;

	fcount_hold();
	for_each_possible_cpu(cpu) {
		memset(per_cpu(fcount_hits, cpu), 0, FCOUNT_SLOTS * sizeof(struct fcount_hits));
		local_set(per_cpu_ptr(&fcount_lost, cpu), 0);
	}
	WRITE_ONCE(fcount_counting, counting);
	return 0;
}

/* Holds a reference, so that the cgroup may be removed while it is counted. */
static int fcount_watch(const char *path)
{
	struct cgroup *group = NULL, *former;

	if (*path) {
		group = cgroup_get_from_path(path);
		if (IS_ERR(group))
			return PTR_ERR(group);
	}
	former = rcu_replace_pointer(fcount_group, group, lockdep_is_held(&fcount_lock));
	synchronize_rcu();
	if (former)
		cgroup_put(former);
	return 0;
}

static int fcount_obey(const char *word)
{
	if (!strcmp(word, "on"))
		return fcount_on();
	if (!strcmp(word, "off"))
		return fcount_off();
	if (!strcmp(word, "reset"))
		return fcount_reset();
	if (!strcmp(word, "cgroup"))
		return fcount_watch("");
	if (!strncmp(word, "cgroup /", 8))
		return fcount_watch(word + 7);
	if (!fcount_registered)
		return -EINVAL;
	if (!strcmp(word, "hold")) {
		fcount_hold();
		return 0;
	}
	if (!strcmp(word, "go"))
		return fcount_on();
	return -EINVAL;
}

static ssize_t fcount_ctl_write(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	char *text;
	int ret;

	if (size > FCOUNT_COMMAND)
		return -E2BIG;
	text = memdup_user_nul(from, size);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&fcount_lock);
	ret = fcount_obey(strim(text));
	mutex_unlock(&fcount_lock);
	kfree(text);
	return ret ?: size;
}

static int fcount_ctl_open(struct inode *inode, struct file *file)
{
	int ret = 0;

	mutex_lock(&fcount_lock);
	if (fcount_leased)
		ret = -EBUSY;
	fcount_leased = true;
	mutex_unlock(&fcount_lock);
	return ret ?: nonseekable_open(inode, file);
}

static int fcount_ctl_release(struct inode *inode, struct file *file)
{
	mutex_lock(&fcount_lock);
	WARN_ON(fcount_off());
	fcount_watch("");
	fcount_reset();
	fcount_leased = false;
	mutex_unlock(&fcount_lock);
	return 0;
}

static const struct file_operations fcount_ctl = {
	.owner = THIS_MODULE,
	.open = fcount_ctl_open,
	.write = fcount_ctl_write,
	.release = fcount_ctl_release,
	.llseek = no_llseek,
};

/* Positions of the dump: 0 is its head, then the places of the table, then its end. */
static void *fcount_dump_at(loff_t *pos)
{
	if (*pos > FCOUNT_SLOTS + 1)
		return NULL;
	return pos;
}

static void *fcount_dump_start(struct seq_file *dump, loff_t *pos)
{
	mutex_lock(&fcount_lock);
	return fcount_dump_at(pos);
}

static void *fcount_dump_next(struct seq_file *dump, void *token, loff_t *pos)
{
	do {
		++*pos;
	} while (*pos <= FCOUNT_SLOTS && !READ_ONCE(fcount_ips[*pos - 1]));
	return fcount_dump_at(pos);
}

static void fcount_dump_stop(struct seq_file *dump, void *token)
{
	mutex_unlock(&fcount_lock);
}

static void fcount_dump_head(struct seq_file *dump)
{
	unsigned long lost = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		lost += local_read(per_cpu_ptr(&fcount_lost, cpu));
	seq_printf(dump, "%s 1 lost %lu\n", KBUILD_MODNAME, lost);
}

static int fcount_dump_show(struct seq_file *dump, void *token)
{
	loff_t at = *(loff_t *)token;
	unsigned long all = 0, group = 0;
	char name[KSYM_SYMBOL_LEN];
	int cpu;

	if (!at) {
		fcount_dump_head(dump);
		return 0;
	}
	if (at > FCOUNT_SLOTS) {
		seq_puts(dump, "end\n");	/* whoever reads knows that he has read all */
		return 0;
	}
	for_each_possible_cpu(cpu) {
		struct fcount_hits *hits = per_cpu(fcount_hits, cpu) + at - 1;

		all += local_read(&hits->all);
		group += local_read(&hits->group);
	}
	if (all) {
		sprint_symbol_no_offset(name, fcount_ips[at - 1]);
		seq_printf(dump, "%lx %lu %lu %s\n", fcount_ips[at - 1], all, group, name);
	}
	return 0;
}

static const struct seq_operations fcount_dump_ops = {
	.start = fcount_dump_start,
	.next = fcount_dump_next,
	.stop = fcount_dump_stop,
	.show = fcount_dump_show,
};

static int fcount_dump_open(struct inode *inode, struct file *file)
{
	return seq_open(file, &fcount_dump_ops);
}

static const struct file_operations fcount_dump = {
	.owner = THIS_MODULE,
	.open = fcount_dump_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = seq_release,
};

static void fcount_free(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		vfree(per_cpu(fcount_hits, cpu));
	vfree(fcount_ips);
}

static int __init fcount_init(void)
{
	int cpu;

	fcount_ips = vzalloc(FCOUNT_SLOTS * sizeof(*fcount_ips));
	if (!fcount_ips)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct fcount_hits *hits = vzalloc_node(FCOUNT_SLOTS * sizeof(*hits), cpu_to_node(cpu));

		if (!hits) {
			fcount_free();
			return -ENOMEM;
		}
		per_cpu(fcount_hits, cpu) = hits;
	}
	fcount_dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("ctl", 0200, fcount_dir, NULL, &fcount_ctl);
	debugfs_create_file("dump", 0400, fcount_dir, NULL, &fcount_dump);
	return 0;
}

/* An open file keeps the module: nothing is registered when it goes. */
static void __exit fcount_exit(void)
{
	debugfs_remove(fcount_dir);
	fcount_free();
}

module_init(fcount_init);
module_exit(fcount_exit);
MODULE_DESCRIPTION("Counts how often each kernel function is entered, on the whole host and by one cgroup");
MODULE_LICENSE("GPL");
