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
 * kernel's memory, the arguments say (tare.features.kernel.lab.btf); without them everything is nobody's.
 *
 * Which code it is: of the kernel the function, by its table of symbols; of programs the file that the code is mapped from,
 * which the kernel knows of each page of memory. A page is found by where the emulator has it: all of the machine's memory is
 * in one piece there, and the kernel's own code is at a place in it that is known.
 *
 * A guest of the machine's own /dev/kvm runs between VMRUN and the instruction after it: what it executes is `[guest]`, of
 * the control group of the task that runs it, and of code that has no other name.
 *
 * With `caches=1` every line of 64 bytes that the processor fetches code from or moves data to or from goes through a model of
 * caches, from the first window on (caches.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caches.h"
#include "qemu.h"

#define MAGIC 0x7a4e0000u
enum mark { OPEN = 1, CLOSE, BEGIN, END, READY };

/* The order is that of the log's columns. */
struct counts {
    uint64_t user, kernel, repeated, loads, stores, calls, switches, faults, interrupts;
    uint64_t fetched, moved, l1i, l1d, l2, l3; /* of the model: lines asked for, and those that a cache had not */
};
#define FIELDS (sizeof(struct counts) / sizeof(uint64_t))

#define COMMAND 16
#define PATH 512
#define MOST_OWNERS 4096
#define DEEPEST 16
/* Of code: functions of the kernel and files; the first is all that has no place left. */
#define MOST_PLACES 16384
/* Of an owner's code, so many places are in the log, on each side; the others together. */
#define SHOWN 200

/* What is counted: one for the machine. */
struct all {
    struct counts counts;
    uint64_t places[MOST_PLACES];
};

struct owner {
    char command[COMMAND];
    char group[PATH];
    struct counts counts;
    uint64_t *places;
};

struct place {
    char *name;
    bool kernel;
};

struct symbol {
    uint64_t address;
    uint32_t place; /* 0: none yet */
    char *name;
};

/* Of the kernel's memory without randomisation: its code, its modules; what it maps its code by. */
#define CODE 0xffffffff81000000ull
#define MODULES 0xffffffffc0000000ull
#define CODE_BASE 0xffffffff80000000ull
#define PAGE_BITS 12
#define HIGH_MEMORY (1ull << 32)
#define NOWHERE UINT64_MAX
/* struct page: its size, and fields that no type information names, as they are in nameless unions. */
#define PAGE_STRUCT 64
#define PAGE_HEAD 8
#define PAGE_MAPPING 24
/* struct dentry: where a name's text is in its d_name (struct qstr). */
#define NAME_TEXT 8

__attribute__((visibility("default"))) int qemu_plugin_version = INTERFACE;

static FILE *out;
static struct qemu_plugin_scoreboard *board;
static struct qemu_plugin_register *rdi;
static GByteArray *bytes;

static bool memory; /* whether loads and stores are counted too */
static bool modelled; /* whether caches are */
static bool warm;     /* whether a window was ever open: before, nothing goes through their model */
static bool counting;
static uint64_t window;
static struct counts opened, begun;
static struct all *settled;
static uint64_t current; /* the task that runs, as the kernel addresses it; 0: not seen yet */
static struct owner *owners;
static size_t owner_count;
/* What a guest of the machine's executes, on each side of its kernel. */
#define GUEST "[guest]"
static struct place places[MOST_PLACES] = {{"[other]", false}, {GUEST, false}, {GUEST, true}};
static size_t place_count = 3;
static bool in_guest;
static uint64_t after_guest; /* where the kernel goes on when a guest is left; 0: it has run none */
static struct symbol *symbols;
static size_t symbol_count;
static uint64_t vmemmap_base, vmemmap, low_memory; /* where the pages' array is noted, it is, memory below a gap */
static uint64_t memory_base; /* where the emulator has the machine's first byte of memory; 0: not known yet */

/* Offsets in the kernel's types; -1: not given. */
static struct {
    const char *name;
    int64_t value;
} offsets[] = {
    {"comm", -1}, {"cgroups", -1}, {"dfl_cgrp", -1}, {"kn", -1}, {"name", -1}, {"parent", -1},
    {"host", -1}, {"i_dentry", -1}, {"d_u", -1}, {"d_name", -1},
};
enum offset { COMM, CGROUPS, DFL_CGRP, KN, NAME, PARENT, HOST, I_DENTRY, D_U, D_NAME };

static struct all *all(void) { return qemu_plugin_scoreboard_find(board, 0); }

static struct counts *now(void) { return &all()->counts; }

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
        if (in_guest) {
            strcpy(command, GUEST);
        }
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
    uint64_t *own = owner->places ? owner->places : malloc(sizeof(settled->places));
    memset(owner, 0, sizeof(*owner));
    if (own != NULL) {
        memset(own, 0, sizeof(settled->places));
    }
    owner->places = own;
    strcpy(owner->command, command);
    strcpy(owner->group, group);
    return owner;
}

/* What was counted since the last time goes to the task that runs. */
static void settle(void) {
    const struct all *sum = all();
    struct owner *owner = owner_of(current);
    add_difference(&owner->counts, &sum->counts, &settled->counts);
    settled->counts = sum->counts;
    for (size_t place = 0; place < place_count && owner->places != NULL; place++) {
        size_t whose = in_guest ? 1u + places[place].kernel : place;
        owner->places[whose] += sum->places[place] - settled->places[place];
        settled->places[place] = sum->places[place];
    }
}

static uint64_t *ranked; /* of `by_amount` */

static int by_amount(const void *left, const void *right) {
    uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;
    if (ranked[one] != ranked[other]) {
        return ranked[one] < ranked[other] ? 1 : -1;
    }
    return strcmp(places[one].name, places[other].name);
}

/* The places of an owner's code on one side of the kernel, the most first; a name may have several. */
static void print_code(const struct owner *owner, bool kernel) {
    static uint32_t order[MOST_PLACES];
    size_t count = 0;
    uint64_t rest = 0;
    for (uint32_t place = 1; owner->places != NULL && place < place_count; place++) {
        if (places[place].kernel == kernel && owner->places[place] > 0) {
            order[count++] = place;
        }
    }
    ranked = owner->places;
    qsort(order, count, sizeof(*order), by_amount);
    for (size_t place = 0; place <= count; place++) {
        bool last = place == count;
        if (!last && place >= SHOWN) {
            rest += owner->places[order[place]];
        } else if (!last || rest > 0) {
            fprintf(out, "code %lu %lu %s %s %s %s\n", window, last ? rest : owner->places[order[place]],
                kernel ? "kernel" : "user", owner->command, owner->group, last ? places[0].name : places[order[place]].name);
        }
    }
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
        counting = warm = true;
        owner_count = 0;
        opened = begun = *now();
        *settled = *all();
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
            print_code(&owners[place], false);
            print_code(&owners[place], true);
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
    if (in_guest) {
        return;
    }
    now()->switches++;
    if (counting) {
        settle();
    }
    current = address - (uint64_t)(uintptr_t)offset;
}

/* The kernel is about to run a guest, or has left it: what was counted is the task's that runs it, or the guest's. */
static void crossed(unsigned int vcpu, void *entered) {
    (void)vcpu;
    if (in_guest == (entered != NULL)) {
        return;
    }
    if (counting) {
        settle();
    }
    in_guest = entered != NULL;
}

/* A line of memory goes through the model: first the cache that is asked, then the larger ones. */
static void ask(struct cache *first, uint64_t line, uint64_t *asked, uint64_t *missed) {
    struct counts *counts = now();
    *asked += 1;
    if (holds(first, line)) {
        return;
    }
    *missed += 1;
    if (!holds(&l2, line)) {
        counts->l2++;
        counts->l3 += !holds(&l3, line);
    }
}

static void fetched(unsigned int vcpu, void *line) {
    (void)vcpu;
    if (warm) {
        ask(&l1i, (uint64_t)(uintptr_t)line, &now()->fetched, &now()->l1i);
    }
}

static void moved(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    (void)vcpu;
    (void)data;
    struct qemu_plugin_hwaddr *at = warm ? qemu_plugin_get_hwaddr(info, address) : NULL;
    if (at == NULL || qemu_plugin_hwaddr_is_io(at)) {
        return;
    }
    uint64_t first = qemu_plugin_hwaddr_phys_addr(at);
    uint64_t last = first + (1u << qemu_plugin_mem_size_shift(info)) - 1;
    ask(&l1d, first >> LINE_BITS, &now()->moved, &now()->l1d);
    if (last >> LINE_BITS != first >> LINE_BITS && last >> PAGE_BITS == first >> PAGE_BITS) {
        ask(&l1d, last >> LINE_BITS, &now()->moved, &now()->l1d);
    }
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

static uint32_t new_place(const char *name, bool kernel) {
    char *copy = place_count < MOST_PLACES ? strdup(name) : NULL;
    if (copy == NULL) {
        return 0;
    }
    places[place_count] = (struct place){copy, kernel};
    return (uint32_t)place_count++;
}

static uint32_t place_of_name(const char *name, bool kernel) {
    static uint32_t last;
    if (last != 0 && places[last].kernel == kernel && !strcmp(places[last].name, name)) {
        return last;
    }
    for (uint32_t place = 1; place < place_count; place++) {
        if (places[place].kernel == kernel && !strcmp(places[place].name, name)) {
            return last = place;
        }
    }
    return last = new_place(name, kernel);
}

static struct symbol *symbol_of(uint64_t address) {
    size_t below = 0, above = symbol_count;
    if (address >= MODULES || symbol_count == 0 || address < symbols[0].address) {
        return NULL;
    }
    while (above - below > 1) {
        size_t middle = (below + above) / 2;
        *(symbols[middle].address <= address ? &below : &above) = middle;
    }
    return &symbols[below];
}

static uint32_t place_of_kernel(uint64_t address) {
    struct symbol *symbol = symbol_of(address);
    if (symbol == NULL) {
        return place_of_name("[modules]", true);
    }
    if (symbol->place == 0) {
        symbol->place = new_place(symbol->name, true);
    }
    return symbol->place;
}

/* The name of the file that a page of memory is of, as the kernel knows it. */
static void file_of(uint64_t memory, char *name, size_t room) {
    uint64_t page, head = 0, mapping = 0, alias;
    if (vmemmap == 0 && !(vmemmap_base && read_bytes(vmemmap_base, &vmemmap, sizeof(vmemmap)))) {
        strcpy(name, "[early]");
        return;
    }
    page = vmemmap + (memory >> PAGE_BITS) * PAGE_STRUCT;
    strcpy(name, "[no_file]");
    if (read_bytes(page + PAGE_HEAD, &head, sizeof(head)) && head & 1) {
        page = head - 1;
    }
    if (!read_bytes(page + PAGE_MAPPING, &mapping, sizeof(mapping)) || mapping == 0) {
        return;
    }
    if (mapping & 3) {
        strcpy(name, "[anonymous]");
        return;
    }
    alias = read_pointer(read_pointer(mapping, HOST), I_DENTRY);
    if (alias != 0) {
        uint64_t text = 0;
        read_bytes(alias - (uint64_t)offsets[D_U].value + (uint64_t)offsets[D_NAME].value + NAME_TEXT, &text, sizeof(text));
        read_name(text, name, room);
    }
}

/* The machine's own address of the memory that an instruction is in; NOWHERE: it is not known. */
static uint64_t memory_of(const struct qemu_plugin_insn *insn) {
    uint64_t at = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(insn);
    if (at == 0 || memory_base == 0 || at < memory_base) {
        return NOWHERE;
    }
    at -= memory_base;
    return at < low_memory ? at : at - low_memory + HIGH_MEMORY;
}

static uint32_t place_of(const struct qemu_plugin_insn *insn, bool kernel) {
    uint64_t address = qemu_plugin_insn_vaddr(insn);
    uint64_t at = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(insn);
    if (in_guest && address != after_guest) {
        return 1 + kernel;
    }
    if (kernel) {
        if (memory_base == 0 && at != 0 && address >= CODE && address < MODULES) {
            memory_base = at - (address - CODE_BASE);
        }
        return place_of_kernel(address);
    }
    at = memory_of(insn);
    if (at == NOWHERE || offsets[D_NAME].value < 0) {
        return place_of_name("[early]", false);
    }
    char name[COMMAND * 4];
    file_of(at, name, sizeof(name));
    return place_of_name(name, false);
}

/* Instructions in a row of which only the last may not come to its end: they are counted at once, at the first. */
struct row {
    struct qemu_plugin_insn *first;
    uint64_t length;
    size_t offset;
    uint32_t place; /* of all rows in a piece of translated code */
};

static void count(struct qemu_plugin_insn *insn, size_t offset, uint64_t many) {
    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, entry(offset), many);
}

/* An exception or an interrupt begins at the first instruction of a function that is known by its name. */
static void count_entry(struct qemu_plugin_insn *insn, uint64_t address) {
    const struct symbol *symbol = symbol_of(address);
    if (symbol == NULL || symbol->address != address) {
        return;
    }
    if (!strcmp(symbol->name, "asm_exc_page_fault")) {
        count(insn, offsetof(struct counts, faults), 1);
    } else if (!strcmp(symbol->name, "asm_common_interrupt") || !strncmp(symbol->name, "asm_sysvec_", 11)) {
        count(insn, offsetof(struct counts, interrupts), 1);
    }
}

static void end(struct row *row) {
    if (row->length > 0) {
        count(row->first, row->offset, row->length);
        count(row->first, offsetof(struct all, places) + row->place * sizeof(uint64_t), row->length);
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
    static const uint8_t vmrun[] = {0x0f, 0x01, 0xd8};
    uint8_t last[16] = {0};
    size_t last_size = 0;
    size_t length = qemu_plugin_tb_n_insns(tb);
    uint64_t line = NOWHERE;
    struct row row = {0};
    if (length > 0) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, 0);
        row.place = place_of(insn, qemu_plugin_insn_vaddr(insn) >> 63);
    }
    for (size_t place = 0; place < length; place++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, place);
        uint8_t code[16] = {0};
        size_t size = qemu_plugin_insn_data(insn, code, sizeof(code));
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        bool kernel = address >> 63;
        bool enters = kernel && !in_guest && size == sizeof(vmrun) && !memcmp(code, vmrun, sizeof(vmrun));
        if (kernel && place == 0 && !in_guest) {
            count_entry(insn, address);
        }
        if (address == after_guest) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, crossed, QEMU_PLUGIN_CB_R_REGS, NULL);
        }
        if (modelled && memory_of(insn) != NOWHERE) {
            uint64_t next = memory_of(insn) >> LINE_BITS;
            if (next != line) {
                line = next;
                qemu_plugin_register_vcpu_insn_exec_cb(insn, fetched, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)line);
            }
        }
        if (modelled && !enters && !certain(code, size)) {
            qemu_plugin_register_vcpu_mem_cb(insn, moved, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
        }
        if (size == 8 && !memcmp(code, nop, sizeof(nop)) && (word(code + 4) & 0xffff0000u) == MAGIC) {
            void *mark = (void *)(uintptr_t)(word(code + 4) & 0xffffu);
            end(&row);
            qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, QEMU_PLUGIN_CB_R_REGS, mark);
        } else if (enters) {
            /* It is still the kernel's; what it loads and stores of the two sides' registers is nobody's. */
            end(&row);
            row = (struct row){insn, 1, offsetof(struct counts, kernel), row.place};
            end(&row);
            after_guest = address + size;
            qemu_plugin_register_vcpu_insn_exec_cb(insn, crossed, QEMU_PLUGIN_CB_R_REGS, (void *)1);
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

/* Entries from the table of symbols: "ADDRESS NAME" a line, ascending. */
static bool read_symbols(const char *path) {
    FILE *file = fopen(path, "r");
    char name[256];
    uint64_t address;
    size_t room = 1 << 17;
    symbols = calloc(room, sizeof(*symbols));
    while (file != NULL && symbols != NULL && symbol_count < room && fscanf(file, "%lx %255s", &address, name) == 2) {
        if (!strcmp(name, "vmemmap_base")) {
            vmemmap_base = address;
            continue;
        }
        clean(name);
        symbols[symbol_count++] = (struct symbol){address, 0, strdup(name)};
    }
    return file != NULL && !fclose(file) && symbol_count > 0;
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
        if (length == 6 && !strncmp(argv[place], "caches", length)) {
            modelled = atoi(value) != 0;
        }
        if (length == 3 && !strncmp(argv[place], "low", length)) {
            low_memory = strtoull(value, NULL, 10);
        }
        if (length == 7 && !strncmp(argv[place], "symbols", length) && !read_symbols(value)) {
            fprintf(stderr, "tare's plug-in cannot read the kernel's symbols\n");
            return 1;
        }
        for (size_t field = 0; field < sizeof(offsets) / sizeof(offsets[0]); field++) {
            if (strlen(offsets[field].name) == length && !strncmp(argv[place], offsets[field].name, length)) {
                offsets[field].value = atoll(value);
            }
        }
    }
    owners = calloc(MOST_OWNERS, sizeof(*owners));
    bytes = g_byte_array_new();
    board = qemu_plugin_scoreboard_new(sizeof(struct all));
    settled = calloc(1, sizeof(*settled));
    if (out == NULL || owners == NULL || settled == NULL) {
        fprintf(stderr, "tare's plug-in cannot write its log\n");
        return 1;
    }
    qemu_plugin_register_vcpu_init_cb(id, started);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
