#include "kai.h"

#include "decay.h"
#include "moments.h"

/* Returns how many processors u asks for, at work and waiting, above its fair share so far. */
static int64_t missing(const World *world, int64_t c, int64_t u) {
    int64_t asked = row_of(world->state.utility, c, u)[0] + row(world->state.demand_of, c)[u];
    return asked - row(world->record.fair_share, 0)[u];
}

/* Returns the usage of u, in parts of what all processors could have worked (idle ones before the
 * window included), decayed alike. */
static int64_t usage_of_capacity(const World *world, int64_t c, int64_t u) {
    const Record *record = &world->record;
    int64_t steps = record->decay.n[1];
    if (steps == 0)
        return 0;
    double of_one = record->decay.at[2 * steps - 1];
    double capacity = (double)world->state.processors.at[c] * of_one;
    return (int64_t)(record->usage.at[u] / capacity * USAGE_PARTS + 0.5);
}

/* Returns w + (w - usage), w being the weight of u among those that miss processors, which own so
 * many together; times their number, in parts. */
static Whole weight(const World *world, int64_t c, int64_t u, int64_t owned) {
    if (missing(world, c, u) <= 0)
        return 0;
    Whole twice = (Whole)(2 * USAGE_PARTS) * world->record.owned.at[u];
    Whole left = twice - (Whole)usage_of_capacity(world, c, u) * owned;
    return left > 0 ? left : 0;
}

/* Divides what is left by weights, rounded down, to those that miss processors; returns whether some
 * of them missed fewer, so that others can have the rest. */
static bool divide_once(const World *world, int64_t c, int64_t *left) {
    int64_t *fair = row(world->record.fair_share, 0), *rest = row(world->record.fair_share, 1);
    int64_t k = organizations_of(&world->state), divided = *left, owned = 0;
    Whole sum = 0;
    for (int64_t u = 0; u < k; u++)
        owned += missing(world, c, u) > 0 ? world->record.owned.at[u] : 0;
    for (int64_t u = 0; u < k; u++)
        sum += weight(world, c, u, owned);
    if (sum == 0)
        return false;
    bool again = false;
    for (int64_t u = 0; u < k; u++) {
        Whole due = weight(world, c, u, owned) * divided;
        int64_t given = missing(world, c, u);
        bool enough = due >= given * sum;
        again |= due > given * sum;
        rest[u] = enough ? 0 : (int64_t)(due % sum);
        given = enough ? given : (int64_t)(due / sum);
        fair[u] += given;
        *left -= given;
    }
    return again;
}

/* Gives a processor each to those of whose shares most was rounded down. */
static void round_up(const World *world, int64_t left) {
    int64_t *fair = row(world->record.fair_share, 0), *rest = row(world->record.fair_share, 1);
    for (; left > 0; left--) {
        int64_t first = 0;
        for (int64_t u = 1; u < organizations_of(&world->state); u++)
            first = rest[u] > rest[first] ? u : first;
        fair[first] += rest[first] > 0;
        rest[first] = 0;
    }
}

void divide_processors(const World *world, int64_t c) {
    int64_t *fair = row(world->record.fair_share, 0), *rest = row(world->record.fair_share, 1);
    int64_t left = world->state.processors.at[c];
    for (int64_t u = 0; u < organizations_of(&world->state); u++) {
        fair[u] = rest[u] = 0;
        fair[u] = least(world->record.owned.at[u], missing(world, c, u));
        left -= fair[u];
    }
    while (left > 0 && divide_once(world, c, &left))
        ;
    round_up(world, left);
}
