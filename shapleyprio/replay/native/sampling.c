/* Rand: the schedules of sampled coalitions, and keys made of their values (see sampling.py). */

#include "engine.h"
#include "horizon.h"
#include "notes.h"
#include "values.h"

/* Makes a row of one limb from what changes in it, for most seconds nothing does.
 *
 * From one second to the next a value grows by the parts completed by then, and those by the
 * processors that are busy in between. */
static void sum_values(const Keys *keys, const Ints *weights, int64_t u) {
    int64_t begin = keys->begin.at[0], seconds = keys->rows.n[1];
    int64_t columns = keys->notes.entries.n[1];
    uint64_t *target = (uint64_t *)row(keys->rows, u), value = 0, done = 0, busy = 0;
    for (int64_t c = 0; c < weights->n[0]; c++) {
        int64_t factor = -row(*weights, c)[u];
        if (factor == 0)
            continue;
        const int64_t *entry = first_entry(&keys->notes, c);
        uint64_t times = (uint64_t)factor, its_value = short_worth(entry + 1, begin);
        int64_t its_done = parts(entry + 1, begin);
        keys->base.at[u] += (double)factor * (double)(int64_t)its_value;
        keys->slope.at[u] += (double)factor * (double)its_done;
        value += times * its_value;
        done += times * (uint64_t)its_done;
        busy += times * (uint64_t)entry[1];
        for (; entry[columns] < begin + seconds; entry += columns)
            target[entry[columns] - begin] += times * (uint64_t)(entry[columns + 1] - entry[1]);
    }
    for (int64_t second = 0; second < seconds; second++) {
        busy += target[second];
        target[second] = value;
        done += busy;
        value += done;
    }
}

/* Makes the rows: -N phi^ of every organization. */
static void value_sampled(const World *world, const Ints *weights) {
    for (int64_t u = 0; u < weights->n[1]; u++) {
        clear_row(&world->keys, u);
        if (!is_wide(&world->state)) {
            sum_values(&world->keys, weights, u);
            continue;
        }
        for (int64_t c = 0; c < weights->n[0]; c++)
            if (row(*weights, c)[u] != 0)
                add_value(world, c, -row(*weights, c)[u], u);
    }
}

/* Brings the sampled coalitions and the consortium through blocks from `first` to before `last`.
 *
 * weights: [c, k], by which values of the coalitions add up to N phi^.
 *
 * Returns the block that was reached: an earlier one than `last` where the past needs more room. */
EXPORTED int64_t sampling_run_blocks(const World *world, const Ints *weights, int64_t first, int64_t last,
                            int64_t length) {
    const Keys *keys = &world->keys;
    int64_t seconds = keys->rows.n[1], everybody = weights->n[0], behind = everybody + 1;
    for (int64_t block = first; block < last; block++) {
        if (!has_room(&world->state, seconds))
            return block;
        int64_t until = least((block + 1) * seconds, length);
        begin_block(keys, block * seconds);
        engine_advance(FIRST_COME, world, 0, everybody, EVERY_ARRIVAL, until);
        if (engine_advance(KEYED, world, everybody, behind, EVERY_ARRIVAL, until) != behind) {
            value_sampled(world, weights);
            keys->begin.at[1] = 1;
            engine_advance(KEYED, world, everybody, behind, EVERY_ARRIVAL, until);
        }
    }
    return last;
}
