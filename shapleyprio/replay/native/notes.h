/* What coalitions do within a block of seconds, written down for their values. */

#ifndef SHAPLEYPRIO_NOTES_H
#define SHAPLEYPRIO_NOTES_H

#include "moments.h"
#include "state.h"

/* Whether lists are kept of coalition c. */
static inline bool has_list(const Keys *keys, int64_t c) { return c < keys->notes.block.n[0]; }

/* Returns whether there is no room for a list of coalition c of all it may do in a block. */
static inline bool lacks_room(const Keys *keys, int64_t c) {
    const Notes *notes = &keys->notes;
    return has_list(keys, c) && notes->end.at[0] + keys->rows.n[1] + 2 > notes->entries.n[0];
}

/* Goes on to another block, of which there are no keys yet. */
void begin_block(const Keys *keys, int64_t second);

/* Sees to it that coalition c has a list for the block of the keys, if lists are kept of it. */
void open_list(const World *world, int64_t c);

/* Adds processors to moments of all jobs of coalition c, or of older ones, and notes it.
 *
 * Its list must be the last one, if it has one. */
void count(const World *world, int64_t c, int64_t *total, int64_t t, int64_t processors);

/* Returns the entry of coalition c that holds at t, from one of its entries on. */
static inline const int64_t *entry_at(const int64_t *entry, int64_t width, int64_t t) {
    while (entry[width] < t)
        entry += width;
    return entry;
}

/* The first entry of coalition c. */
static inline const int64_t *first_entry(const Notes *notes, int64_t c) {
    return row(notes->entries, notes->first.at[c]);
}

#endif
