#include "placing.h"

#include "moments.h"

/* Draws `wanted` of `free` without putting back, and counts hits of the `owned` ones. */
static int64_t share_of(const Record *record, int64_t free, int64_t wanted, int64_t owned) {
    int64_t hits = 0;
    if (wanted == free)
        return owned;
    for (int64_t drawn = 0; drawn < wanted && hits < owned; drawn++)
        hits += draw(record->random.at, free - drawn) < owned - hits;
    return hits;
}

/* Draws among the free processors, each as likely as any other. */
static void give_random(const Record *record, const int64_t *free_of, int64_t *given, int64_t free,
                        int64_t wanted) {
    for (int64_t owner = 0; owner < record->owned.n[0]; owner++) {
        given[owner] = wanted > 0 ? share_of(record, free, wanted, free_of[owner]) : 0;
        free -= free_of[owner];
        wanted -= given[owner];
    }
}

/* Counts how many processors the job really got of the owner of a part, up to this part. */
static int64_t got_until(const Record *record, int64_t job, int64_t last) {
    int64_t got = 0;
    for (int64_t part = record->first_part.at[job]; part <= last; part++)
        if (record->part_owner.at[part] == record->part_owner.at[last])
            got += record->part_processors.at[part];
    return got;
}

/* Takes what is free of the processors that the job really got; returns how many these are. */
static int64_t give_recorded(const Record *record, const int64_t *free_of, int64_t *given,
                             int64_t job, int64_t wanted) {
    int64_t taken = 0;
    for (int64_t part = record->first_part.at[job]; part < record->first_part.at[job + 1]; part++) {
        int64_t owner = record->part_owner.at[part];
        if (owner < 0)
            continue;
        int64_t in_other_bays = given == record->given.at ? 0 : record->given.at[owner];
        int64_t had = got_until(record, job, part) - in_other_bays - given[owner];
        int64_t count = least(least(had, free_of[owner] - given[owner]), wanted - taken);
        given[owner] += most(count, 0); /* it may have more in other bays than it really got */
        taken += most(count, 0);
    }
    return taken;
}

/* Takes processors one by one from the organization with the most free. */
static void give_least_loaded(const Record *record, const int64_t *free_of, int64_t *given,
                              int64_t wanted) {
    while (wanted-- > 0) {
        int64_t best = 0;
        for (int64_t owner = 1; owner < record->owned.n[0]; owner++)
            if (free_of[owner] - given[owner] > free_of[best] - given[best])
                best = owner;
        given[best]++;
    }
}

void give(const Record *record, const int64_t *free_of, int64_t *given, int64_t job, int64_t free,
          int64_t wanted) {
    if (record->placing.at[0] == RANDOM) {
        give_random(record, free_of, given, free, wanted);
        return;
    }
    memset(given, 0, (size_t)record->owned.n[0] * sizeof(int64_t));
    if (record->placing.at[0] == AS_RECORDED)
        wanted -= give_recorded(record, free_of, given, job, wanted);
    give_least_loaded(record, free_of, given, wanted);
}
