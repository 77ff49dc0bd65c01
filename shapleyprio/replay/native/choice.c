#include "choice.h"

#include "asking.h"
#include "by_second.h"
#include "decay.h"
#include "kai.h"
#include "karma.h"
#include "owen.h"

/* Among all organizations, not those of one union. */
enum { ALL = -1 };

/* What an organization has used of its share; who has used least of it comes first, of those with
 * the lowest rank. */
typedef struct {
    Whole used;
    int64_t share;
    int64_t rank;
} Standing;

/* Returns what parts are worth more at t because of their jobs' releases, of moments of these. */
static Limbs released(const int64_t *moments, bool wide, int64_t t) {
    Limbs sum = wide ? joined(moments[2], moments[1]) : (Limbs)(Whole)moments[1];
    return (Limbs)moments[0] * (Limbs)t - sum;
}

/* Returns phi~ of u's processors. */
static Limbs contribution(const World *world, bool wide, int64_t u, int64_t t) {
    Limbs found = (Limbs)worth(row(world->record.contribution, u), wide, t);
    if (has_horizon(&world->state))
        found -= (Limbs)worth(row(world->state.past.contribution, u), wide, t);
    return found;
}

/* Returns how far u is ahead: its own psi less what DirectContr (SPAA 2013, Fig. 9) holds against
 * it, phi~ of its processors. By CloudShare's psi' (Eq. 3) a part is worth its job's release more;
 * by psi'' (Eq. 4) parts count, not when they were executed. */
static Whole lead(int64_t policy, const World *world, bool wide, int64_t c, int64_t t, int64_t u) {
    const Coalitions *state = &world->state;
    const Ints of_releases = world->record.released;
    if (policy == SURFACE)
        return (Whole)parts(row_of(state->utility, c, u), t) -
               parts(row(world->record.contribution, u), t);
    Limbs ahead = (Limbs)utility_at(state, wide, c, u, t) - contribution(world, wide, u, t);
    if (policy == RELATIVE)
        ahead += released(row_of(of_releases, 0, u), wide, t) -
                 released(row_of(of_releases, 1, u), wide, t);
    return wide ? (Whole)ahead : (Whole)(int64_t)ahead;
}

/* Returns where u stands by a policy.
 *
 * FairShare looks at the processor time that it had (with a half-life at what is left of it),
 * UtFairShare at its utility psi and CurrFairShare at the processors that work for it, each for its
 * share of the processors; RoundRobin serves whoever comes first behind the one that was served last,
 * FCFS the earliest release, then in the order of the log. Karma serves first who has less than is
 * guaranteed, then by credits, of which what is borrowed now is paid a second ahead. KAI serves first
 * who has no more than its fair share, then whom its next job leaves within its own processors, then
 * who has least of the larger of the two with that job. */
static Standing standing(int64_t policy, const World *world, bool wide, int64_t c, int64_t t,
                         int64_t u) {
    const Coalitions *state = &world->state;
    const int64_t *own = row_of(state->utility, c, u), share = world->record.owned.at[u];
    int64_t k = organizations_of(state);
    switch (policy) {
    case FAIR_SHARE:
        return (Standing){parts(own, t), share, 0};
    case DECAYED_SHARE:
        return (Standing){usage_by_share(world->record.usage.at[u], share), share > 0, 0};
    case UTILITY_SHARE:
        return (Standing){utility_at(state, wide, c, u, t), share, 0};
    case CURRENT_SHARE:
        return (Standing){own[0], share, 0};
    case KARMA: {
        int64_t above = above_guaranteed(world, c, u);
        return (Standing){most(above, 0) - (Whole)world->record.credits.at[u], share, above >= 0};
    }
    case KAI: {
        int64_t fair = row(world->record.fair_share, 0)[u], next = own[0] + next_width(world, c, u);
        int64_t rank = 2 * (own[0] > fair) + (next > share);
        return (Standing){next, most(share, fair), rank};
    }
    case ROUND_ROBIN:
        return (Standing){(u - state->served.at[c] - 1 + k) % k, 1, 0};
    default:
        return (Standing){lead(policy, world, wide, c, t, u), 1, 0};
    }
}

/* Whether by a policy organizations stand by what they used for their share. */
static bool by_share(int64_t policy) {
    return policy == FAIR_SHARE || policy == UTILITY_SHARE || policy == CURRENT_SHARE;
}

/* Whether a union stands by a policy where its members do together; else nobody asks for unions. */
static bool adds_up(int64_t policy) {
    bool balance = policy == DIRECT || policy == RELATIVE || policy == SURFACE;
    return policy == KEYED || policy == DECAYED_SHARE || balance || by_share(policy);
}

static bool comes_before(Standing one, Standing other) {
    if (one.rank != other.rank)
        return one.rank < other.rank;
    return less_by_share(one.used, one.share, other.used, other.share);
}

/* Returns where a union stands by a policy that adds up: where all its members together do. */
static Standing standing_of_union(int64_t policy, const World *world, bool wide, int64_t c,
                                  int64_t t, int64_t one) {
    Standing sum = {0, 0, 0};
    double usage = 0.0;
    for (int64_t u = 0; u < organizations_of(&world->state); u++) {
        if (world->jobs.unions.at[u] != one)
            continue;
        sum.used += standing(policy, world, wide, c, t, u).used;
        sum.share += world->record.owned.at[u];
        usage += world->record.usage.at[u];
    }
    if (policy == DECAYED_SHARE)
        return (Standing){usage_by_share(usage, sum.share), sum.share > 0, 0};
    return by_share(policy) ? sum : (Standing){sum.used, 1, 0};
}

/* Returns whether u may be chosen among those of a union, or ALL. */
static bool may_be_chosen(const World *world, int64_t c, int64_t t, int64_t u, int64_t one) {
    return (one == ALL || world->jobs.unions.at[u] == one) && is_candidate(&world->state, c, t, u);
}

/* Returns the candidate that comes before all others of a union, or of ALL. */
static int64_t first_of_all(int64_t policy, const World *world, int64_t c, int64_t t,
                            int64_t one) {
    bool wide = is_wide(&world->state);
    int64_t best = -1, k = organizations_of(&world->state);
    Standing best_one = {0, 0, 0};
    for (int64_t u = 0; u < k; u++) {
        if (!may_be_chosen(world, c, t, u, one))
            continue;
        Standing its = standing(policy, world, wide, c, t, u);
        if (best < 0 || comes_before(its, best_one)) {
            best = u;
            best_one = its;
        }
    }
    return best;
}

/* Whether the next job of u has waited for as long as its guarantee says, and fits into what u owns
 * and does not use. */
static bool is_guaranteed(const World *world, int64_t c, int64_t t, int64_t u) {
    const Record *record = &world->record;
    int64_t used = row_of(world->state.utility, c, u)[0];
    int64_t waited = t - world->jobs.release.at[row(world->state.head, c)[u]];
    return waited >= record->guarantee.at[0] &&
           used + next_width(world, c, u) <= record->owned.at[u];
}

/* Chooses the earliest release, then in the order of the log, of all or of those with a guarantee;
 * returns -1 if there are none of these. */
static int64_t earliest(const World *world, int64_t c, int64_t t, bool guaranteed) {
    const int64_t *head = row(world->state.head, c);
    int64_t best = -1;
    for (int64_t u = 0; u < organizations_of(&world->state); u++) {
        if (!is_candidate(&world->state, c, t, u) ||
            (guaranteed && !is_guaranteed(world, c, t, u)))
            continue;
        if (best < 0 || was_first(&world->jobs, head[u], head[best]))
            best = u;
    }
    return best;
}

/* A key, exactly modulo 2^64 or 2^128 and rounded, of which the least is served first. */
typedef struct {
    Limbs exact;
    double rounded;
} Key;

/* Returns the key of u; keys of two limbs are compared as they are, those of one without their odd
 * divisor. */
static Key key_of(const World *world, bool wide, int64_t c, int64_t t, int64_t u) {
    const Keys *keys = &world->keys;
    int64_t second = t - keys->begin.at[0], factor = keys->factor.at[c];
    int64_t place = keys->lattice.at[0] != 0 ? c ^ (int64_t)1 << u : u;
    int64_t low = row(keys->rows, place)[second];
    Whole utility = utility_at(&world->state, wide, c, u, t);
    double rounded = keys->base.at[place] + keys->slope.at[place] * (double)second +
                     (double)factor * (double)utility;
    if (wide)
        return (Key){joined(row(keys->high, place)[second], low) + (Limbs)utility * (Limbs)factor,
                     rounded};
    uint64_t exact = (uint64_t)low + (uint64_t)factor * (uint64_t)utility;
    return (Key){exact * (uint64_t)keys->inverse.at[c], rounded * keys->shrink.at[c]};
}

/* Chooses for Ref and Rand the largest phi - psi of a union, or of ALL, which has the least of all
 * keys (`lattice`). */
static int64_t least_key(const World *world, int64_t c, int64_t t, int64_t one) {
    bool wide = is_wide(&world->state);
    int64_t best = -1, k = organizations_of(&world->state);
    Key best_key = {0, 0.0};
    for (int64_t u = 0; u < k; u++) {
        if (!may_be_chosen(world, c, t, u, one))
            continue;
        Key its = key_of(world, wide, c, t, u);
        if (best < 0 || precedes(its.exact, its.rounded, best_key.exact, best_key.rounded, wide)) {
            best = u;
            best_key = its;
        }
    }
    return best;
}

/* Returns the key of a union: the sum of its members'. */
static Key key_of_union(const World *world, bool wide, int64_t c, int64_t t, int64_t one) {
    Key sum = {0, 0.0};
    for (int64_t u = 0; u < organizations_of(&world->state); u++) {
        if (world->jobs.unions.at[u] != one)
            continue;
        Key its = key_of(world, wide, c, t, u);
        sum = (Key){sum.exact + its.exact, sum.rounded + its.rounded};
    }
    return sum;
}

/* Returns the union that comes before all others of which a member is a candidate; the one with the
 * lowest number, which the one listed first has, where they are equal. */
static int64_t first_union(int64_t policy, const World *world, int64_t c, int64_t t) {
    bool wide = is_wide(&world->state), keyed = policy == KEYED;
    int64_t best = -1, k = organizations_of(&world->state);
    Key best_key = {0, 0.0};
    Standing best_one = {0, 0, 0};
    for (int64_t one = 0; one < k; one++) {
        int64_t u = 0;
        while (u < k && !may_be_chosen(world, c, t, u, one))
            u++;
        if (u == k)
            continue;
        Key key = keyed ? key_of_union(world, wide, c, t, one) : best_key;
        Standing its =
            keyed ? best_one : standing_of_union(policy, world, wide, c, t, one);
        if (best < 0 ||
            (keyed ? precedes(key.exact, key.rounded, best_key.exact, best_key.rounded, wide)
                   : comes_before(its, best_one))) {
            best = one;
            best_key = key;
            best_one = its;
        }
    }
    return best;
}

static int64_t first_candidate(const Coalitions *state, int64_t c, int64_t t) {
    int64_t u = 0;
    while (!is_candidate(state, c, t, u))
        u++;
    return u;
}

int64_t next_served(int64_t policy, const World *world, int64_t c, int64_t t, bool contended) {
    bool unasked = policy == FIRST_COME && !is_recorded(world, c);
    bool by_heads = has_guarantee(world, c) && !passes_own(world, c) && !is_confined(world);
    int64_t first = by_heads ? earliest(world, c, t, true) : -1;
    if (first >= 0)
        return first;
    if (!contended && (by_keys(policy) || unasked))
        return first_candidate(&world->state, c, t);
    if (policy == FIRST_COME)
        return earliest(world, c, t, false);
    if (by_keys(policy))
        world->keys.begin.at[3] = 1;
    if (policy == KEYED && has_unions(world) && world->keys.lattice.at[0] != 0)
        return first_by_owen(world, c, t);
    int64_t one = has_unions(world) && adds_up(policy) ? first_union(policy, world, c, t) : ALL;
    if (!by_keys(policy))
        return first_of_all(policy, world, c, t, one);
    if (world->keys.by_second.used.at[0] != 0)
        return least_key_by_second(world, c, t);
    return least_key(world, c, t, one);
}
