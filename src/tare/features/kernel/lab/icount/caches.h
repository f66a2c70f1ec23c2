/* A model of one core's caches: the sizes of AMD's Zen 3, with the least recently used line as the one that goes.
 *
 * Each has lines of 64 bytes by their place in memory. A line that a cache has not is asked of the next one, and is in all that
 * were asked then. There is no prefetcher, no second core, and writing is as reading; a page table's walk asks nothing.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LINE_BITS 6
#define L1_SETS 64
#define L1_WAYS 8
#define L2_SETS 1024
#define L2_WAYS 8
#define L3_SETS 32768
#define L3_WAYS 16

/* The lines of each set, the one used last first, their numbers counted from 1; 0: none yet. */
struct cache {
    uint64_t sets, ways, *lines;
};

static uint64_t l1i_lines[L1_SETS * L1_WAYS], l1d_lines[L1_SETS * L1_WAYS], l2_lines[L2_SETS * L2_WAYS],
    l3_lines[L3_SETS * L3_WAYS];
static struct cache l1i = {L1_SETS, L1_WAYS, l1i_lines}, l1d = {L1_SETS, L1_WAYS, l1d_lines},
                    l2 = {L2_SETS, L2_WAYS, l2_lines}, l3 = {L3_SETS, L3_WAYS, l3_lines};

/* Whether the cache has the line; afterwards it has. */
static bool holds(struct cache *cache, uint64_t line) {
    uint64_t *set = cache->lines + (line % cache->sets) * cache->ways;
    uint64_t way = 0;
    line++;
    while (way < cache->ways - 1 && set[way] != line) {
        way++;
    }
    bool held = set[way] == line;
    memmove(set + 1, set, way * sizeof(*set));
    set[0] = line;
    return held;
}
