/* The values of coalitions over a block of seconds. */

#ifndef SHAPLEYPRIO_VALUES_H
#define SHAPLEYPRIO_VALUES_H

#include "state.h"

/* Adds factor v(c, t) to a row of keys, for all t of the block, by the list of coalition c. */
void add_value(const World *world, int64_t c, int64_t factor, int64_t target);

/* Sums R(c) over the block, from those of the coalitions with one member less (lattice.py). */
void value_coalition(const World *world, int64_t c);

/* Makes the rows of all coalitions with smaller numbers than c that have none yet. */
void value_before(const World *world, int64_t c);

/* Empties a row of keys. */
void clear_row(const Keys *keys, int64_t place);

#endif
