#include "notes.h"

void begin_block(const Keys *keys, int64_t second) {
    memset(keys->begin.at, 0, 4 * sizeof(int64_t));
    keys->begin.at[0] = second;
    for (int64_t c = 0; c < keys->notes.block.n[0]; c++)
        keys->notes.block.at[c] = -1; /* a block may begin twice */
    keys->notes.end.at[0] = 0;
}

/* Writes the moments of all that counts in coalition c, and closes the list behind them. */
static void write_entry(const World *world, int64_t place, int64_t c, int64_t t) {
    const Coalitions *state = &world->state;
    const Notes *notes = &world->keys.notes;
    const int64_t *total = row(state->total, c);
    int64_t *entry = row(notes->entries, place);
    int64_t columns = notes->entries.n[1];
    entry[0] = t;
    memcpy(entry + 1, total, (size_t)(columns - 1) * sizeof(int64_t));
    if (has_horizon(state)) {
        const int64_t *older = row(state->past.total, c);
        entry[1] -= older[0];
        entry[2] -= older[1];
        if (is_wide(state)) {
            Limbs left = joined(total[3], total[2]) - joined(older[3], older[2]);
            entry[3] = (int64_t)left;
            entry[4] = (int64_t)(left >> 64);
        } else {
            entry[3] = (int64_t)((uint64_t)total[2] - (uint64_t)older[2]);
        }
    }
    entry[columns] = NEVER;
    notes->end.at[0] = place + 2;
}

void open_list(const World *world, int64_t c) {
    const Keys *keys = &world->keys;
    const Notes *notes = &keys->notes;
    if (has_list(keys, c) && notes->block.at[c] != keys->begin.at[0]) {
        int64_t place = notes->end.at[0];
        notes->block.at[c] = keys->begin.at[0];
        notes->first.at[c] = place;
        write_entry(world, place, c, keys->begin.at[0]);
    }
}

void count(const World *world, int64_t c, int64_t *total, int64_t t, int64_t processors) {
    const Notes *notes = &world->keys.notes;
    open_list(world, c);
    add(total, is_wide(&world->state), t, processors);
    if (has_list(&world->keys, c)) {
        int64_t place = notes->end.at[0] - 2;
        if (place == notes->first.at[c] || notes->entries.at[place * notes->entries.n[1]] != t)
            place++;
        write_entry(world, place, c, t);
    }
}
