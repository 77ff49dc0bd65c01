/* Ref: every coalition of the consortium at once, each deciding by its own Shapley values.
 *
 * The theory is told in shapleyprio/replay/engine/lattice.py. */

#include "by_second.h"
#include "engine.h"
#include "horizon.h"
#include "notes.h"
#include "values.h"

/* Brings all coalitions through the block of the keys.
 *
 * Values are made only if one of them has to choose, and then of smaller numbers only. */
static void run_lazily(const World *world, int64_t every, int64_t arriving, int64_t until) {
    for (int64_t c = 1; c < every;) {
        c = engine_advance(KEYED, world, c, every, arriving, until);
        if (c == every)
            return;
        value_before(world, c);
        if (world->state.undecided.at[c] == 0) /* it stopped for want of room */
            world->keys.notes.end.at[0] = 0;
    }
}

/* Brings all coalitions through the blocks from `first` to before `last`.
 *
 * arriving: [blocks], whose jobs are released in each one, as bits.
 * length: of the window in seconds.
 * choices: [1], the blocks in which there was a choice are added to it.
 *
 * Returns the block that was reached: an earlier one than `last` where the past needs more room. */
EXPORTED int64_t lattice_run_blocks(const World *world, const Ints *arriving, int64_t first, int64_t last,
                           int64_t length, const Ints *choices) {
    const Keys *keys = &world->keys;
    int64_t seconds = keys->rows.n[1], every = world->state.free.n[0];
    for (int64_t block = first; block < last; block++) {
        if (!has_room(&world->state, seconds))
            return block;
        use_cheaper(keys);
        begin_block(keys, block * seconds);
        int64_t until = least((block + 1) * seconds, length);
        if (keys->by_second.used.at[0] != 0) {
            keys->begin.at[1] = keys->by_second.made.at[0] = 1;
            engine_advance(KEYED, world, 1, every, arriving->at[block], until);
        } else {
            run_lazily(world, every, arriving->at[block], until);
        }
        choices->at[0] += keys->begin.at[3] != 0;
    }
    return last;
}

EXPORTED void lattice_use_cheaper(const Keys *keys) { use_cheaper(keys); }

EXPORTED void lattice_make_potentials(const Keys *keys, int64_t last) { make_potentials(keys, last); }

/* Brings coalitions `first` to before `last` through the block of the keys, with their values.
 *
 * What they choose by, the values of their subsets, must be there. */
EXPORTED void lattice_run_part(const World *world, int64_t first, int64_t last, int64_t arriving,
                      int64_t until) {
    const Keys *keys = &world->keys;
    if (keys->by_second.used.at[0] != 0) {
        keys->by_second.made.at[0] = first;
        engine_advance(KEYED, world, first, last, arriving, until);
        make_potentials(keys, last);
        return;
    }
    int64_t begin = keys->notes.end.at[0];
    for (int64_t c = first; c < last; c++) {
        keys->notes.end.at[0] = begin;
        engine_advance(KEYED, world, c, c + 1, arriving, until);
        value_coalition(world, c);
    }
}
