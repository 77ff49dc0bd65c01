#include "by_second.h"

#include "choice.h"
#include "notes.h"

/* A value takes as long by second as so many seconds of a row. */
enum { SECONDS_FOR_A_VALUE = 2 };

static double *potential_of(const BySecond *by, int64_t c) {
    return by->potential.at + c * by->potential.n[1];
}

/* Whether organization u is among these. */
static bool has(int64_t members, int64_t u) { return members >> u & 1; }

VECTORIZED static void add_points(double *target, const double *added, int64_t points) {
    for (int64_t point = 0; point < points; point++)
        target[point] += added[point];
}

void make_potentials(const Keys *keys, int64_t last) {
    const BySecond *by = &keys->by_second;
    const Notes *notes = &keys->notes;
    int64_t points = by->potential.n[1], columns = notes->entries.n[1];
    for (int64_t c = by->made.at[0]; c < last; c++) {
        double *potential = potential_of(by, c);
        const int64_t *entry = first_entry(notes, c);
        int64_t t = keys->begin.at[0];
        for (int64_t point = 0; point < points; point++) {
            entry = entry_at(entry, columns, t);
            potential[point] = (double)(int64_t)short_worth(entry + 1, t);
            t += (int64_t)1 << by->cell_bits.at[0];
        }
        for (int64_t left = c; left != 0; left &= left - 1)
            add_points(potential, potential_of(by, c ^ (left & -left)), points);
        for (int64_t point = 0; point < points; point++)
            potential[point] /= (double)by->members.at[c];
    }
    by->made.at[0] = last;
}

/* Returns the bits of all who may have the least exact key; who has the least rough one is `best`.
 */
static int64_t nearest_of(const World *world, int64_t c, int64_t t, int64_t *best) {
    const Coalitions *state = &world->state;
    const Keys *keys = &world->keys;
    const BySecond *by = &keys->by_second;
    int64_t k = organizations_of(state), bits = by->cell_bits.at[0];
    if (by->made.at[0] < c)
        make_potentials(keys, c);
    int64_t second = t - keys->begin.at[0], point = second >> bits;
    double part = (double)(second - (point << bits)) / (double)((int64_t)1 << bits);
    int64_t candidates = 0;
    *best = -1;
    for (int64_t u = 0; u < k; u++) {
        if (!is_candidate(state, c, t, u))
            continue;
        const double *at = potential_of(by, c ^ (int64_t)1 << u) + point;
        by->rough.at[u] =
            at[0] + (at[1] - at[0]) * part + (double)(int64_t)utility_at(state, false, c, u, t);
        candidates |= (int64_t)1 << u;
        if (*best < 0 || by->rough.at[u] < by->rough.at[*best])
            *best = u;
    }
    double nearest = by->rough.at[*best] + by->doubt.at[0];
    for (int64_t u = 0; u < k; u++)
        if (has(candidates, u) && by->rough.at[u] > nearest)
            candidates ^= (int64_t)1 << u;
    return candidates;
}

/* Adds up keys of the candidates modulo 2^64, without the values that are in all of them. */
static void add_up(const Keys *keys, int64_t c, int64_t candidates, int64_t t) {
    const Notes *notes = &keys->notes;
    const BySecond *by = &keys->by_second;
    const int64_t *weights = row(by->weights, by->members.at[c]);
    int64_t k = by->exact.n[0], columns = notes->entries.n[1], others = c & ~candidates;
    memset(by->exact.at, 0, (size_t)k * sizeof(int64_t));
    for (int64_t some = candidates & -candidates; some != candidates;
         some = (some - candidates) & candidates) {
        uint64_t total = 0;
        int64_t rest = 0;
        for (;;) {
            int64_t subset = some | rest;
            const int64_t *entry = entry_at(first_entry(notes, subset), columns, t);
            total += (uint64_t)weights[by->members.at[subset]] * short_worth(entry + 1, t);
            if (rest == others)
                break;
            rest = (rest - others) & others;
        }
        for (int64_t u = 0; u < k; u++)
            if (has(candidates & ~some, u))
                by->exact.at[u] = (int64_t)((uint64_t)by->exact.at[u] + total);
    }
}

int64_t least_key_by_second(const World *world, int64_t c, int64_t t) {
    const Keys *keys = &world->keys;
    const BySecond *by = &keys->by_second;
    int64_t best, candidates = nearest_of(world, c, t, &best);
    if ((candidates & (candidates - 1)) == 0)
        return best;
    by->asked.at[0] += (int64_t)1 << by->members.at[c];
    add_up(keys, c, candidates, t);
    best = -1;
    uint64_t best_exact = 0;
    for (int64_t u = 0; u < by->exact.n[0]; u++) {
        if (!has(candidates, u))
            continue;
        uint64_t utility = (uint64_t)utility_at(&world->state, false, c, u, t);
        uint64_t exact = (uint64_t)by->exact.at[u] + (uint64_t)keys->factor.at[c] * utility;
        exact *= (uint64_t)keys->inverse.at[c];
        if (best < 0 || (int64_t)(exact - best_exact) < 0) {
            best = u;
            best_exact = exact;
        }
    }
    return best;
}

void use_cheaper(const Keys *keys) {
    const BySecond *by = &keys->by_second;
    int64_t of_rows = keys->rows.n[0] * keys->rows.n[1];
    bool cheaper = by->asked.at[0] * SECONDS_FOR_A_VALUE < of_rows;
    by->used.at[0] = by->members.n[0] != 0 && cheaper;
    by->asked.at[0] = by->used.at[0] != 0 ? 0 : by->asked.at[0] >> 1;
}
