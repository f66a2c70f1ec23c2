/* Counts what a whole machine executes between two markers, to the instruction; a plug-in of QEMU's emulator.
 *
 * A marker is an 8-byte NOP (nopl disp32(%rax,%rax,1)) whose displacement is MAGIC and what it marks; RDI has a number that
 * goes with it. It is recognised when code is translated, needs no right, and costs a NOP where nobody counts.
 *
 *   OPEN n   window n begins         BEGIN    a piece of work begins, within a window
 *   CLOSE n  it ends: its lines      END u    it ends, and was u units
 *   READY    the agent speaks: what was counted in the window until then
 *
 * Instructions of an address in the upper half are the kernel's. Iterations of a repeated string instruction are counted
 * apart, as their number is that of bytes moved. Whose work it is: at each switch of tasks, which is recognised by its
 * code, the counts since the last one go to the command and control group of the task that leaves. Where those are in the
 * kernel's memory, the arguments say (tare.lab.btf); without them everything is nobody's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu.h"

#define MAGIC 0x7a4e0000u
enum mark { OPEN = 1, CLOSE, BEGIN, END, READY };

/* The order is that of the log's columns. */
struct counts {
    uint64_t user, kernel, repeated, loads, stores, calls, switches;
};
#define FIELDS (sizeof(struct counts) / sizeof(uint64_t))

#define COMMAND 16
#define PATH 512
#define MOST_OWNERS 4096
#define DEEPEST 16

struct owner {
    char command[COMMAND];
    char group[PATH];
    struct counts counts;
};

__attribute__((visibility("default"))) int qemu_plugin_version = INTERFACE;

static FILE *out;
static struct qemu_plugin_scoreboard *board;
static struct qemu_plugin_register *rdi;
static GByteArray *bytes;

static bool memory; /* whether loads and stores are counted too */
static bool counting;
static uint64_t window;
static struct counts opened, begun, settled;
static uint64_t current; /* the task that runs, as the kernel addresses it; 0: not seen yet */
static struct owner *owners;
static size_t owner_count;

/* Offsets in the kernel's types; -1: not given. */
static struct {
    const char *name;
    int64_t value;
} offsets[] = {
    {"comm", -1}, {"cgroups", -1}, {"dfl_cgrp", -1}, {"kn", -1}, {"name", -1}, {"parent", -1},
};
enum offset { COMM, CGROUPS, DFL_CGRP, KN, NAME, PARENT };

static struct counts *now(void) { return qemu_plugin_scoreboard_find(board, 0); }

static void add_difference(struct counts *sum, const struct counts *end, const struct counts *start) {
    uint64_t *into = (uint64_t *)sum;
    for (size_t field = 0; field < FIELDS; field++) {
        into[field] += ((const uint64_t *)end)[field] - ((const uint64_t *)start)[field];
    }
}

static void print_counts(const struct counts *counts) {
    for (size_t field = 0; field < FIELDS; field++) {
        fprintf(out, " %lu", ((const uint64_t *)counts)[field]);
    }
}

static bool read_bytes(uint64_t address, void *into, size_t length) {
    g_byte_array_set_size(bytes, 0);
    if (!qemu_plugin_read_memory_vaddr(address, bytes, length) || bytes->len < length) {
        return false;
    }
    memcpy(into, bytes->data, length);
    return true;
}

static uint64_t read_pointer(uint64_t address, enum offset field) {
    uint64_t value = 0;
    if (address == 0 || !read_bytes(address + (uint64_t)offsets[field].value, &value, sizeof(value))) {
        return 0;
    }
    return value;
}

/* What a log's line can hold: no space, no control character. */
static void clean(char *text) {
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~') {
            *text = '_';
        }
    }
}

static void read_name(uint64_t address, char *into, size_t room) {
    size_t length = 0;
    while (address != 0 && length + 1 < room && read_bytes(address + length, into + length, 1) && into[length]) {
        length++;
    }
    into[length] = 0;
    clean(into);
}

static void read_group(uint64_t task, char *path) {
    char names[DEEPEST][64];
    int depth = 0;
    uint64_t node = read_pointer(read_pointer(read_pointer(task, CGROUPS), DFL_CGRP), KN);
    while (node != 0 && depth < DEEPEST) {
        uint64_t parent = read_pointer(node, PARENT);
        if (parent == 0) {
            break;
        }
        read_name(read_pointer(node, NAME), names[depth++], sizeof(names[0]));
        node = parent;
    }
    size_t length = 0;
    path[0] = '/';
    path[1] = 0;
    while (depth > 0) {
        length += (size_t)snprintf(path + length, PATH - length, "/%s", names[--depth]);
        if (length >= PATH) {
            return;
        }
    }
}

static struct owner *owner_of(uint64_t task) {
    char command[COMMAND] = "-", group[PATH] = "-";
    if (task != 0 && offsets[COMM].value >= 0) {
        if (!read_bytes(task + (uint64_t)offsets[COMM].value, command, sizeof(command))) {
            strcpy(command, "-");
        }
        command[COMMAND - 1] = 0;
        clean(command);
        read_group(task, group);
    }
    for (size_t place = 0; place < owner_count; place++) {
        if (!strcmp(owners[place].command, command) && !strcmp(owners[place].group, group)) {
            return &owners[place];
        }
    }
    if (owner_count == MOST_OWNERS) {
        return &owners[MOST_OWNERS - 1];
    }
    struct owner *owner = &owners[owner_count++];
    memset(owner, 0, sizeof(*owner));
    strcpy(owner->command, command);
    strcpy(owner->group, group);
    return owner;
}

/* What was counted since the last time goes to the task that runs. */
static void settle(void) {
    const struct counts *counts = now();
    add_difference(&owner_of(current)->counts, counts, &settled);
    settled = *counts;
}

static int by_name(const void *left, const void *right) {
    const struct owner *one = left, *other = right;
    int groups = strcmp(one->group, other->group);
    return groups ? groups : strcmp(one->command, other->command);
}

static void print_since(const char *kind, const struct counts *start) {
    struct counts sum = {0};
    add_difference(&sum, now(), start);
    fprintf(out, "%s %lu", kind, window);
    print_counts(&sum);
}

static uint64_t number(void) {
    uint64_t value = 0;
    g_byte_array_set_size(bytes, 0);
    if (rdi == NULL || qemu_plugin_read_register(rdi, bytes) < (int)sizeof(value)) {
        fprintf(out, "error RDI cannot be read\n");
        return 0;
    }
    memcpy(&value, bytes->data, sizeof(value));
    return value;
}

static void marked(unsigned int vcpu, void *data) {
    (void)vcpu;
    switch ((enum mark)(uintptr_t)data) {
    case OPEN:
        window = number();
        counting = true;
        owner_count = 0;
        opened = settled = begun = *now();
        break;
    case CLOSE:
        if (!counting || number() != window) {
            break;
        }
        settle();
        counting = false;
        print_since("window", &opened);
        fprintf(out, "\n");
        qsort(owners, owner_count, sizeof(*owners), by_name);
        for (size_t place = 0; place < owner_count; place++) {
            fprintf(out, "share %lu", window);
            print_counts(&owners[place].counts);
            fprintf(out, " %s %s\n", owners[place].command, owners[place].group);
        }
        fflush(out);
        break;
    case BEGIN:
        begun = *now();
        break;
    case END:
        if (counting) {
            print_since("piece", &begun);
            fprintf(out, " %lu\n", number());
        }
        break;
    case READY:
        if (counting) {
            print_since("ready", &opened);
            fprintf(out, "\n");
        }
        break;
    }
}

static void switched(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *offset) {
    (void)vcpu;
    (void)info;
    now()->switches++;
    if (counting) {
        settle();
    }
    current = address - (uint64_t)(uintptr_t)offset;
}

static qemu_plugin_u64 entry(size_t offset) { return (qemu_plugin_u64){board, offset}; }

/* A string instruction (ins, outs, movs, cmps, stos, lods, scas) with a prefix that repeats it. */
static bool repeats(const uint8_t *code, size_t size) {
    bool prefixed = false;
    for (size_t place = 0; place < size; place++) {
        uint8_t byte = code[place];
        if (byte == 0xf2 || byte == 0xf3) {
            prefixed = true;
        } else if (byte != 0x66 && byte != 0x67 && (byte & 0xf0) != 0x40) {
            return prefixed && ((byte >= 0x6c && byte <= 0x6f) || (byte >= 0xa4 && byte <= 0xa7) ||
                                (byte >= 0xaa && byte <= 0xaf));
        }
    }
    return false;
}

/* Whether an instruction goes on to the next one for certain: it has no operand in memory, and raises nothing. */
static bool certain(const uint8_t *code, size_t size) {
    size_t place = 0;
    while (place < size && (code[place] == 0x66 || (code[place] & 0xf0) == 0x40)) {
        place++;
    }
    uint8_t byte = code[place++], operands = code[place];
    bool registers = operands >> 6 == 3;
    uint8_t which = (operands >> 3) & 7;
    if (byte == 0x0f) {
        byte = code[place++];
        registers = code[place] >> 6 == 3;
        if (byte == 0x1f || (byte >= 0x80 && byte <= 0x8f) || (byte >= 0xc8 && byte <= 0xcf)) {
            return true; /* nop, jcc, bswap */
        }
        return registers && ((byte >= 0x40 && byte <= 0x4f) || (byte >= 0x90 && byte <= 0x9f) || byte == 0xaf ||
                             byte == 0xb6 || byte == 0xb7 || byte == 0xbe || byte == 0xbf); /* cmov, set, imul, movx */
    }
    if (byte < 0x40) {
        return (byte & 7) < 4 ? registers : (byte & 7) < 6; /* add, or, adc, sbb, and, sub, xor, cmp */
    }
    switch (byte) {
    case 0x63: case 0x69: case 0x6b: case 0x80: case 0x81: case 0x83: case 0x84: case 0x85: case 0x86: case 0x87:
    case 0x88: case 0x89: case 0x8a: case 0x8b: case 0xc0: case 0xc1: case 0xc6: case 0xc7: case 0xd0: case 0xd1:
    case 0xd2: case 0xd3:
        return registers;
    case 0x8d: case 0x90: case 0x98: case 0x99: case 0xa8: case 0xa9: case 0xe9: case 0xeb: /* lea among them */
        return true;
    case 0xf6: case 0xf7:
        return registers && which < 6; /* all but div */
    case 0xfe: case 0xff:
        return registers && which < 2; /* inc, dec */
    }
    return (byte >= 0x70 && byte <= 0x7f) || (byte >= 0xb0 && byte <= 0xbf); /* jcc, mov of a constant */
}

/* Instructions in a row of which only the last may not come to its end: they are counted at once, at the first. */
struct row {
    struct qemu_plugin_insn *first;
    uint64_t length;
    size_t offset;
};

static void count(struct qemu_plugin_insn *insn, size_t offset, uint64_t many) {
    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, entry(offset), many);
}

static void end(struct row *row) {
    if (row->length > 0) {
        count(row->first, row->offset, row->length);
    }
    row->length = 0;
}

static uint32_t word(const uint8_t *code) {
    uint32_t value;
    memcpy(&value, code, sizeof(value));
    return value;
}

static void count_memory(struct qemu_plugin_insn *insn) {
    qemu_plugin_register_vcpu_mem_inline_per_vcpu(
        insn, QEMU_PLUGIN_MEM_R, QEMU_PLUGIN_INLINE_ADD_U64, entry(offsetof(struct counts, loads)), 1);
    qemu_plugin_register_vcpu_mem_inline_per_vcpu(
        insn, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_INLINE_ADD_U64, entry(offsetof(struct counts, stores)), 1);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    static const uint8_t nop[] = {0x0f, 0x1f, 0x84, 0x00};
    static const uint8_t leaves[] = {0x48, 0x89, 0xa7}; /* mov %rsp, offset(%rdi) */
    static const uint8_t comes[] = {0x48, 0x8b, 0xa6};  /* mov offset(%rsi), %rsp */
    uint8_t last[16] = {0};
    size_t last_size = 0;
    size_t length = qemu_plugin_tb_n_insns(tb);
    struct row row = {0};
    for (size_t place = 0; place < length; place++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, place);
        uint8_t code[16] = {0};
        size_t size = qemu_plugin_insn_data(insn, code, sizeof(code));
        bool kernel = qemu_plugin_insn_vaddr(insn) >> 63;
        if (size == 8 && !memcmp(code, nop, sizeof(nop)) && (word(code + 4) & 0xffff0000u) == MAGIC) {
            void *mark = (void *)(uintptr_t)(word(code + 4) & 0xffffu);
            end(&row);
            qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, QEMU_PLUGIN_CB_R_REGS, mark);
        } else if (repeats(code, size)) {
            end(&row);
            count(insn, offsetof(struct counts, repeated), 1);
        } else {
            if (row.length++ == 0) {
                row.first = insn;
                row.offset = kernel ? offsetof(struct counts, kernel) : offsetof(struct counts, user);
            }
            if (!kernel && size == 2 && code[0] == 0x0f && code[1] == 0x05) {
                count(insn, offsetof(struct counts, calls), 1);
            }
            if (!certain(code, size)) {
                end(&row);
                if (memory) {
                    count_memory(insn);
                }
            }
        }
        if (kernel && size == 7 && last_size == 7 && !memcmp(code, comes, sizeof(comes)) &&
            !memcmp(last, leaves, sizeof(leaves)) && word(code + 3) == word(last + 3)) {
            void *offset = (void *)(uintptr_t)word(code + 3);
            qemu_plugin_register_vcpu_mem_cb(insn, switched, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_MEM_R, offset);
        }
        memcpy(last, code, sizeof(last));
        last_size = size;
    }
    end(&row);
}

static void started(qemu_plugin_id_t id, unsigned int vcpu) {
    (void)id;
    (void)vcpu;
    GArray *registers = qemu_plugin_get_registers();
    const qemu_plugin_reg_descriptor *each = (const qemu_plugin_reg_descriptor *)registers->data;
    for (unsigned int place = 0; place < registers->len; place++) {
        if (!strcmp(each[place].name, "rdi")) {
            rdi = each[place].handle;
        }
    }
}

__attribute__((visibility("default"))) int qemu_plugin_install(
    qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    if (strcmp(info->target_name, "x86_64") || !info->system_emulation || info->system.smp_vcpus != 1) {
        fprintf(stderr, "tare's plug-in counts a machine of one x86-64 processor\n");
        return 1;
    }
    for (int place = 0; place < argc; place++) {
        const char *value = strchr(argv[place], '=');
        if (value == NULL) {
            continue;
        }
        size_t length = (size_t)(value++ - argv[place]);
        if (length == 3 && !strncmp(argv[place], "log", length)) {
            out = fopen(value, "w");
        }
        if (length == 6 && !strncmp(argv[place], "memory", length)) {
            memory = atoi(value) != 0;
        }
        for (size_t field = 0; field < sizeof(offsets) / sizeof(offsets[0]); field++) {
            if (strlen(offsets[field].name) == length && !strncmp(argv[place], offsets[field].name, length)) {
                offsets[field].value = atoll(value);
            }
        }
    }
    owners = calloc(MOST_OWNERS, sizeof(*owners));
    bytes = g_byte_array_new();
    board = qemu_plugin_scoreboard_new(sizeof(struct counts));
    if (out == NULL || owners == NULL) {
        fprintf(stderr, "tare's plug-in cannot write its log\n");
        return 1;
    }
    qemu_plugin_register_vcpu_init_cb(id, started);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
