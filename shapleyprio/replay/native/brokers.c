/* CloudShare's simulation of one coalition of brokers (see papers/cloudshare/brokers.py). */

#include "moments.h"

enum { HOUR = 3600 };

/* Algorithms, as brokers.py has them. */
enum { ORIGINAL, RELATIVE, SIMPLIFIED, FAIR_SHARE, ROUND_ROBIN };

typedef struct {
    Ints first;
    Ints release;
    Ints units;
} Queues;

typedef struct {
    Ints owned;
    Ints free;
    Ints arriving;
    Ints last;
    Ints background_arriving;
    Ints background_last;
    Ints head;
    Ints left;
    Ints waiting;
    Ints background;
    Ints utility;
    Ints contribution;
    Ints released;
    Ints served;
    Ints end;
    Ints owner;
    Ints organization;
    Ints release;
    Ints ring;
    Ints waits;
    Words random;
} Brokers;

static int64_t sum(const Ints *numbers) {
    int64_t all = 0;
    for (int64_t i = 0; i < numbers->n[0]; i++)
        all += numbers->at[i];
    return all;
}

static int64_t next_moment(const Brokers *brokers, const Queues *federated,
                           const Queues *background) {
    int64_t t = brokers->ring.at[1] > 0 ? brokers->end.at[brokers->ring.at[0]] : NEVER;
    for (int64_t u = 0; u < brokers->owned.n[0]; u++) {
        int64_t job = brokers->arriving.at[u];
        if (job < brokers->last.at[u])
            t = least(t, federated->release.at[job]);
        job = brokers->background_arriving.at[u];
        if (job < brokers->background_last.at[u])
            t = least(t, background->release.at[job]);
    }
    return t;
}

/* Records that processors start (or, negative, stop) working for u at t. */
static void write_down(const Brokers *brokers, int64_t u, int64_t owner, int64_t release, int64_t t,
                       int64_t processors) {
    add(row(brokers->utility, u), false, t, processors);
    add(row(brokers->contribution, owner), false, t, processors);
    int64_t *released[] = {row_of(brokers->released, 0, u), row_of(brokers->released, 1, owner)};
    for (int i = 0; i < 2; i++) {
        released[i][0] += processors * release;
        released[i][1] += processors * release * t;
    }
}

/* Ends what has run until t; units are equally long, so the first to start ends first. */
static void finish(const Brokers *brokers, int64_t t) {
    int64_t *first = &brokers->ring.at[0], *count = &brokers->ring.at[1];
    while (*count > 0 && brokers->end.at[*first] <= t) {
        int64_t owner = brokers->owner.at[*first], u = brokers->organization.at[*first];
        brokers->free.at[owner]++;
        if (u >= 0)
            write_down(brokers, u, owner, brokers->release.at[*first], t, -1);
        *first = (*first + 1) % brokers->end.n[0];
        --*count;
    }
}

static void arrive(const Brokers *brokers, const Queues *federated, const Queues *background,
                   int64_t t) {
    for (int64_t u = 0; u < brokers->owned.n[0]; u++) {
        int64_t *job = &brokers->arriving.at[u];
        for (; *job < brokers->last.at[u] && federated->release.at[*job] <= t; ++*job) {
            if (brokers->waiting.at[u] == 0) {
                brokers->head.at[u] = *job;
                brokers->left.at[u] = federated->units.at[*job];
            }
            brokers->waiting.at[u] += federated->units.at[*job];
        }
        job = &brokers->background_arriving.at[u];
        for (; *job < brokers->background_last.at[u] && background->release.at[*job] <= t; ++*job)
            brokers->background.at[u] += background->units.at[*job];
    }
}

static void occupy(const Brokers *brokers, int64_t owner, int64_t organization, int64_t release,
                   int64_t t) {
    int64_t entry = (brokers->ring.at[0] + brokers->ring.at[1]++) % brokers->end.n[0];
    brokers->free.at[owner]--;
    brokers->end.at[entry] = t + HOUR;
    brokers->owner.at[entry] = owner;
    brokers->organization.at[entry] = organization;
    brokers->release.at[entry] = release;
}

static void start_background(const Brokers *brokers, int64_t t) {
    for (int64_t u = 0; u < brokers->owned.n[0]; u++)
        for (; brokers->background.at[u] > 0 && brokers->free.at[u] > 0; brokers->background.at[u]--)
            occupy(brokers, u, -1, 0, t);
}

/* Starts the first waiting unit of an organization on a processor of that owner. */
static void start(const Brokers *brokers, const Queues *federated, int64_t u, int64_t owner,
                  int64_t t, int64_t turn) {
    int64_t *head = &brokers->head.at[u], *left = &brokers->left.at[u];
    int64_t release = federated->release.at[*head];
    brokers->waits.at[u] += t - release;
    brokers->served.at[u] = turn;
    brokers->waiting.at[u]--;
    if (--*left == 0 && brokers->waiting.at[u] > 0)
        *left = federated->units.at[++*head];
    write_down(brokers, u, owner, release, t, 1);
    occupy(brokers, owner, u, release, t);
}

/* Returns contribution less utility, measured by psi (Eq. 2), psi' (Eq. 3) or psi'' (Eq. 4). */
static int64_t priority(int64_t algorithm, const Brokers *brokers, int64_t t, int64_t u) {
    const int64_t *lent = row(brokers->contribution, u), *used = row(brokers->utility, u);
    if (algorithm == SIMPLIFIED)
        return parts(lent, t) - parts(used, t);
    uint64_t balance = short_worth(lent, t) - short_worth(used, t);
    if (algorithm == RELATIVE) {
        /* every part is worth its job's release more */
        const int64_t *before = row_of(brokers->released, 0, u);
        const int64_t *on_ours = row_of(brokers->released, 1, u);
        balance += (uint64_t)(parts(on_ours, t) - parts(before, t));
    }
    return (int64_t)balance;
}

static bool comes_before(int64_t algorithm, const Brokers *brokers, int64_t t, int64_t u,
                         int64_t w) {
    if (algorithm == ROUND_ROBIN)
        return brokers->served.at[u] < brokers->served.at[w];
    if (algorithm == FAIR_SHARE)
        return less_by_share(parts(row(brokers->utility, u), t), brokers->owned.at[u],
                             parts(row(brokers->utility, w), t), brokers->owned.at[w]);
    return priority(algorithm, brokers, t, u) > priority(algorithm, brokers, t, w);
}

/* Returns whose unit starts; ties go to the organization listed first. */
static int64_t served_next(int64_t algorithm, const Brokers *brokers, int64_t t) {
    int64_t best = -1;
    for (int64_t u = 0; u < brokers->owned.n[0]; u++)
        if (brokers->waiting.at[u] > 0 &&
            (best < 0 || comes_before(algorithm, brokers, t, u, best)))
            best = u;
    return best;
}

static int64_t drawn_owner(const Brokers *brokers, int64_t free) {
    int64_t left = draw(brokers->random.at, free), owner = 0;
    while (left >= brokers->free.at[owner])
        left -= brokers->free.at[owner++];
    return owner;
}

EXPORTED void brokers_run(int64_t algorithm, const Brokers *brokers, const Queues *federated,
                          const Queues *background, int64_t units) {
    for (int64_t turn = 0; turn < units;) {
        int64_t t = next_moment(brokers, federated, background);
        finish(brokers, t);
        bool queued = sum(&brokers->waiting) > 0;
        arrive(brokers, federated, background, t);
        start_background(brokers, t);
        if (!queued && sum(&brokers->waiting) <= sum(&brokers->free))
            for (int64_t u = 0; u < brokers->owned.n[0]; u++)
                while (brokers->waiting.at[u] > 0 && brokers->free.at[u] > 0)
                    start(brokers, federated, u, u, t, turn++);
        int64_t free = sum(&brokers->free);
        for (int64_t count = least(sum(&brokers->waiting), free); count > 0; count--) {
            int64_t owner = drawn_owner(brokers, free--);
            start(brokers, federated, served_next(algorithm, brokers, t), owner, t, turn++);
        }
    }
}
