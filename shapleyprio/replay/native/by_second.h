/* Keys of Ref's lattice at single seconds: rough ones, and exact ones where these are too near.
 *
 * Most choices are between organizations whose keys are far apart. A rough key is P(C\u) + psi_u of
 * lattice.py, rounded. Potentials are kept for a few seconds of a block, and in between taken from
 * straight lines. A value grows by the parts completed, and these by as many as processors are busy,
 * from 0 to m. So a value lies at most m s^2 / 8 below the line between two points s seconds apart,
 * and a potential, the sum of values times weights that add up to 1 + 1/2 + ... + 1/|C|, so many
 * times that.
 *
 * Keys that differ by no more than that and what rounding may have done are found exactly: R(C) is a
 * sum over all subsets of C, of which each of s members weighs (s - 1)! (|C| - s)!. Subsets without
 * any candidate are in the keys of all of them, and those with all candidates in no key: only
 * subsets with some of them are looked at. Their values follow from their notes. */

#ifndef SHAPLEYPRIO_BY_SECOND_H
#define SHAPLEYPRIO_BY_SECOND_H

#include "state.h"

/* Chooses as the least of keys of rows does. */
int64_t least_key_by_second(const World *world, int64_t c, int64_t t);

/* Makes the potentials of all coalitions with smaller numbers than `last` that have none yet. */
void make_potentials(const Keys *keys, int64_t last);

/* Decides by what the last blocks asked for whether keys are found by second or in rows.
 *
 * While they are in rows that counts less with each block, so that both are tried now and then. */
void use_cheaper(const Keys *keys);

#endif
