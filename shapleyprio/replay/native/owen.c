#include "owen.h"

#include "choice.h"
#include "notes.h"

/* More organizations than there are in a lattice. */
enum { ROOM = 32 };

/* What is compared: of each union or member, the sum modulo 2^128 and rounded. */
typedef struct {
    Limbs exact[ROOM];
    double rounded[ROOM];
} Sums;

/* The unions of a coalition.
 *
 * count: how many have a member in it.
 * members: of each, as bits, in the order of the unions.
 * candidates: those of its members of which a job may start. */
typedef struct {
    int64_t count;
    int64_t members[ROOM];
    int64_t candidates[ROOM];
} Unions;

static int64_t size_of(int64_t coalition) {
    return __builtin_popcountll((unsigned long long)coalition);
}

static int64_t factorial(int64_t n) {
    int64_t product = 1;
    for (int64_t factor = 2; factor <= n; factor++)
        product *= factor;
    return product;
}

static Unions unions_of(const World *world, int64_t c, int64_t t) {
    int64_t k = organizations_of(&world->state), members[ROOM] = {0}, candidates[ROOM] = {0};
    for (int64_t u = 0; u < k; u++) {
        int64_t one = world->jobs.unions.at[u], bit = c & (int64_t)1 << u;
        members[one] |= bit;
        if (bit != 0 && is_candidate(&world->state, c, t, u))
            candidates[one] |= bit;
    }
    Unions found = {0, {0}, {0}};
    for (int64_t one = 0; one < k; one++) {
        if (members[one] == 0)
            continue;
        found.members[found.count] = members[one];
        found.candidates[found.count++] = candidates[one];
    }
    return found;
}

/* Returns the union of those chosen, by their places as bits. */
static int64_t joint(const Unions *unions, int64_t chosen) {
    int64_t members = 0;
    for (int64_t place = 0; place < unions->count; place++)
        if (chosen >> place & 1)
            members |= unions->members[place];
    return members;
}

/* Adds the value of a coalition, so many times, to the sums of those with these bits. */
static void add_value_to(Sums *sums, const World *world, int64_t coalition, int64_t t,
                         int64_t times, int64_t bits) {
    const Notes *notes = &world->keys.notes;
    const int64_t *entry = entry_at(first_entry(notes, coalition), notes->entries.n[1], t) + 1;
    Whole value = is_wide(&world->state) ? (Whole)long_worth(entry, t)
                                         : (Whole)(int64_t)short_worth(entry, t);
    double rounded = (double)value * (double)times;
    Limbs exact = (Limbs)value * (Limbs)times;
    for (; bits != 0; bits &= bits - 1) {
        int place = __builtin_ctzll((unsigned long long)bits);
        sums->exact[place] += exact;
        sums->rounded[place] += rounded;
    }
}

/* Adds the utilities of members of coalition c to one sum. */
static void add_utilities(Sums *sums, const World *world, int64_t c, int64_t t, int64_t times,
                          int64_t members, int64_t place) {
    bool wide = is_wide(&world->state);
    for (; members != 0; members &= members - 1) {
        int64_t u = __builtin_ctzll((unsigned long long)members);
        Whole utility = utility_at(&world->state, wide, c, u, t);
        sums->exact[place] += (Limbs)utility * (Limbs)times;
        sums->rounded[place] += (double)utility * (double)times;
    }
}

/* Returns the first of those with these bits that has the least sum. */
static int64_t least_sum(const Sums *sums, int64_t bits) {
    int64_t best = -1;
    for (; bits != 0; bits &= bits - 1) {
        int64_t place = __builtin_ctzll((unsigned long long)bits);
        if (best < 0 || precedes(sums->exact[place], sums->rounded[place], sums->exact[best],
                                 sums->rounded[best], true))
            best = place;
    }
    return best;
}

static int64_t first_union(const World *world, int64_t c, int64_t t, const Unions *unions) {
    int64_t m = unions->count, candidates = 0;
    for (int64_t place = 0; place < m; place++)
        if (unions->candidates[place] != 0)
            candidates |= (int64_t)1 << place;
    if (size_of(candidates) == 1)
        return __builtin_ctzll((unsigned long long)candidates);
    Sums sums = {{0}, {0.0}};
    for (int64_t chosen = 1; chosen < ((int64_t)1 << m) - 1; chosen++) {
        int64_t q = size_of(chosen), times = factorial(q - 1) * factorial(m - 1 - q);
        if ((candidates & ~chosen) != 0)
            add_value_to(&sums, world, joint(unions, chosen), t, times, candidates & ~chosen);
    }
    for (int64_t left = candidates; left != 0; left &= left - 1) {
        int64_t place = __builtin_ctzll((unsigned long long)left);
        add_utilities(&sums, world, c, t, factorial(m - 1), unions->members[place], place);
    }
    return least_sum(&sums, candidates);
}

int64_t first_by_owen(const World *world, int64_t c, int64_t t) {
    Unions unions = unions_of(world, c, t);
    int64_t place = first_union(world, c, t, &unions), m = unions.count;
    int64_t own = unions.members[place], candidates = unions.candidates[place];
    if (size_of(candidates) == 1)
        return __builtin_ctzll((unsigned long long)candidates);
    int64_t d = size_of(own), all = ((int64_t)1 << m) - 1;
    Sums sums = {{0}, {0.0}};
    for (int64_t chosen = 0; chosen <= all; chosen++) {
        if (chosen >> place & 1)
            continue;
        int64_t q = size_of(chosen), others = joint(&unions, chosen);
        int64_t between = factorial(q) * factorial(m - 1 - q);
        for (int64_t part = own & -own; part != own; part = (part - own) & own) {
            int64_t s = size_of(part), within = factorial(s - 1) * factorial(d - 1 - s);
            if ((candidates & ~part) != 0)
                add_value_to(&sums, world, others | part, t, between * within,
                             candidates & ~part);
        }
    }
    for (int64_t left = candidates; left != 0; left &= left - 1) {
        int64_t u = __builtin_ctzll((unsigned long long)left);
        add_utilities(&sums, world, c, t, factorial(m) * factorial(d - 1), left & -left, u);
    }
    return least_sum(&sums, candidates);
}
