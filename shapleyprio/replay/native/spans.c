/* Spans of Ref's lattice: what changed in coalitions that others schedule (see spans.py). */

#include "notes.h"
#include "values.h"

/* Makes rows of what is noted, if so many lists more may be too many, from `first` on. */
EXPORTED void spans_keep_room(const World *world, int64_t first, int64_t lists) {
    const Keys *keys = &world->keys;
    int64_t wanted = lists * (keys->rows.n[1] + 2);
    if (keys->notes.end.at[0] + wanted > keys->notes.entries.n[0]) {
        value_before(world, first);
        keys->notes.end.at[0] = 0;
    }
}

/* Lets coalitions from `first` on change as they did elsewhere, in the block of the keys. */
EXPORTED void spans_repeat(const World *world, int64_t first, const Words16 *counts, const Words16 *seconds,
                  const Ints32 *processors) {
    int64_t begin = world->keys.begin.at[0], place = 0;
    for (int64_t number = 0; number < counts->n[0]; number++) {
        int64_t c = first + number, last = place + counts->at[number];
        spans_keep_room(world, c, 1);
        for (; place < last; place++)
            count(world, c, row(world->state.total, c), begin + seconds->at[place],
                  processors->at[place]);
        open_list(world, c);
    }
}

/* Writes down what changed in coalitions from `first` on, and returns at how many seconds. */
EXPORTED int64_t spans_changes(const Keys *keys, int64_t first, const Words16 *counts,
                      const Words16 *seconds, const Ints32 *processors) {
    int64_t columns = keys->notes.entries.n[1], found = 0;
    for (int64_t number = 0; number < counts->n[0]; number++) {
        int64_t before = found;
        const int64_t *entry = first_entry(&keys->notes, first + number);
        for (; entry[columns] != NEVER; entry += columns) {
            seconds->at[found] = (uint16_t)(entry[columns] - keys->begin.at[0]);
            processors->at[found++] = (int32_t)(entry[columns + 1] - entry[1]);
        }
        counts->at[number] = (uint16_t)(found - before);
    }
    return found;
}
