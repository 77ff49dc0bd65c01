#include "values.h"

#include "horizon.h"
#include "notes.h"

/* Adds the polynomial of a stretch without changes: from one second to the next a value grows by
 * the parts completed by then, and those by the processors that are busy in between. */
static void add_stretch(int64_t *target, int64_t seconds, uint64_t value, uint64_t done,
                        uint64_t busy) {
    for (int64_t second = 0; second < seconds; second++) {
        target[second] = (int64_t)((uint64_t)target[second] + value);
        done += busy;
        value += done;
    }
}

static void add_short_value(const Keys *keys, int64_t c, int64_t factor, int64_t place) {
    int64_t begin = keys->begin.at[0], length = keys->rows.n[1];
    int64_t columns = keys->notes.entries.n[1], *target = row(keys->rows, place);
    const int64_t *entry = first_entry(&keys->notes, c);
    keys->base.at[place] += (double)factor * (double)(int64_t)short_worth(entry + 1, begin);
    keys->slope.at[place] += (double)factor * (double)parts(entry + 1, begin);
    for (int64_t second = 0; second < length; entry += columns) {
        int64_t until = least(entry[columns] - begin + 1, length), t = begin + second;
        uint64_t times = (uint64_t)factor;
        add_stretch(target + second, until - second, times * short_worth(entry + 1, t),
                    times * (uint64_t)parts(entry + 1, t), times * (uint64_t)entry[1]);
        second = until;
    }
}

/* With a horizon a value grows less: by the parts that came to be older, and these by the
 * processors that were busy a horizon ago. */
static void add_long_value(const Keys *keys, int64_t c, int64_t factor, int64_t place) {
    int64_t begin = keys->begin.at[0], columns = keys->notes.entries.n[1];
    int64_t *low = row(keys->rows, place), *high = row(keys->high, place);
    const int64_t *entry = first_entry(&keys->notes, c);
    Limbs value = long_worth(entry + 1, begin), done = (Limbs)(Whole)parts(entry + 1, begin);
    keys->base.at[place] += (double)factor * (double)(Whole)value;
    keys->slope.at[place] += (double)factor * (double)(Whole)done;
    value *= (Limbs)factor;
    done *= (Limbs)factor;
    for (int64_t second = 0; second < keys->rows.n[1]; second++) {
        Limbs sum = joined(high[second], low[second]) + value;
        low[second] = (int64_t)sum;
        high[second] = (int64_t)(sum >> 64);
        if (entry[columns] == begin + second)
            entry += columns;
        done += (Limbs)factor * (Limbs)entry[1];
        value += done;
    }
}

void add_value(const World *world, int64_t c, int64_t factor, int64_t target) {
    (is_wide(&world->state) ? add_long_value : add_short_value)(&world->keys, c, factor, target);
}

void clear_row(const Keys *keys, int64_t place) {
    memset(row(keys->rows, place), 0, (size_t)keys->rows.n[1] * sizeof(int64_t));
    memset(row(keys->high, place), 0, (size_t)keys->high.n[1] * sizeof(int64_t));
    keys->base.at[place] = 0.0;
    keys->slope.at[place] = 0.0;
}

/* Takes the first member that is left from c; nobody is left where there is none. */
static int64_t next_smaller(int64_t c, int64_t *left) {
    int64_t smaller = *left != 0 ? c ^ (*left & -*left) : 0;
    *left &= *left - 1;
    return smaller;
}

VECTORIZED static void sum_four(int64_t *target, bool again, const int64_t *a, const int64_t *b,
                                const int64_t *c, const int64_t *d, int64_t seconds) {
    uint64_t *sum = (uint64_t *)target;
    const uint64_t *e = (const uint64_t *)a, *f = (const uint64_t *)b;
    const uint64_t *g = (const uint64_t *)c, *h = (const uint64_t *)d;
    if (again)
        for (int64_t second = 0; second < seconds; second++)
            sum[second] += (e[second] + f[second]) + (g[second] + h[second]);
    else
        for (int64_t second = 0; second < seconds; second++)
            sum[second] = (e[second] + f[second]) + (g[second] + h[second]);
}

/* Sums rows of keys of one limb, four at a time; that of nobody's coalition is empty. */
static void sum_smaller(const Keys *keys, int64_t c) {
    double base = 0.0, slope = 0.0;
    for (int64_t left = c; left != 0;) {
        bool again = left != c;
        int64_t of[4];
        for (int i = 0; i < 4; i++)
            of[i] = next_smaller(c, &left);
        base += keys->base.at[of[0]] + keys->base.at[of[1]] + keys->base.at[of[2]] +
                keys->base.at[of[3]];
        slope += keys->slope.at[of[0]] + keys->slope.at[of[1]] + keys->slope.at[of[2]] +
                 keys->slope.at[of[3]];
        sum_four(row(keys->rows, c), again, row(keys->rows, of[0]), row(keys->rows, of[1]),
                 row(keys->rows, of[2]), row(keys->rows, of[3]), keys->rows.n[1]);
    }
    keys->base.at[c] = base;
    keys->slope.at[c] = slope;
}

/* Adds one row of keys of two limbs to another one. */
static void add_long_row(const Keys *keys, int64_t place, int64_t source) {
    int64_t *low = row(keys->rows, place), *high = row(keys->high, place);
    const int64_t *more_low = row(keys->rows, source), *more_high = row(keys->high, source);
    keys->base.at[place] += keys->base.at[source];
    keys->slope.at[place] += keys->slope.at[source];
    for (int64_t second = 0; second < keys->rows.n[1]; second++) {
        Limbs sum = joined(high[second], low[second]) + joined(more_high[second], more_low[second]);
        low[second] = (int64_t)sum;
        high[second] = (int64_t)(sum >> 64);
    }
}

void value_coalition(const World *world, int64_t c) {
    const Keys *keys = &world->keys;
    if (is_wide(&world->state)) {
        clear_row(keys, c);
        for (int64_t left = c; left != 0;)
            add_long_row(keys, c, next_smaller(c, &left));
    } else {
        sum_smaller(keys, c);
    }
    add_value(world, c, keys->factor.at[c], c);
}

void value_before(const World *world, int64_t c) {
    int64_t *valued = &world->keys.begin.at[2];
    for (int64_t smaller = most(*valued - 1, 1); smaller < c; smaller++)
        value_coalition(world, smaller);
    *valued = c + 1;
}

/* Writes v(c, t) of all coalitions, for a t at or after everything that happened.
 *
 * limbs: int64[c, 2], the low limb and the high one. */
EXPORTED void values_write(const Coalitions *state, int64_t t, const Ints *limbs) {
    bool wide = is_wide(state);
    for (int64_t c = 0; c < limbs->n[0]; c++) {
        Limbs value = (Limbs)worth(row(state->total, c), wide, t);
        if (has_horizon(state))
            value -= (Limbs)worth(row(state->past.total, c), wide, t);
        row(*limbs, c)[0] = (int64_t)value;
        row(*limbs, c)[1] = (int64_t)(value >> 64);
    }
}
