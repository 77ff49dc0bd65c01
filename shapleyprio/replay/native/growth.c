/* What was found in a game and still holds in a later one (see growth.py). */

#include "arrays.h"
#include "games.h"

/* Says whether a job is the same, and nothing that was certain of it has changed. */
static bool continues(const Arrays *old, int64_t job, const Arrays *new, int64_t later) {
    int64_t seconds = old->processing_time.at[job], certain = old->certain.at[job];
    if (old->release.at[job] != new->release.at[later] ||
        old->processors.at[job] != new->processors.at[later])
        return false;
    if (certain < seconds)
        return new->certain.at[later] >= certain;
    return seconds == new->processing_time.at[later] && seconds == new->certain.at[later];
}

EXPORTED void growth_common_jobs(const Arrays *old, const Arrays *new, const Ints *common,
                                 const Ints *seen) {
    int64_t k = common->n[0];
    for (int64_t u = 0; u < k; u++) {
        int64_t jobs = least(old->first.at[u + 1] - old->first.at[u],
                             new->first.at[u + 1] - new->first.at[u]);
        int64_t *count = &common->at[u];
        while (*count < jobs && continues(old, job_of(old, u, *count), new, job_of(new, u, *count)))
            ++*count;
    }
    int64_t last = -1;
    for (int64_t job = 0; job < old->release.n[0]; job++) {
        int64_t u = old->organization.at[job];
        if (seen->at[u] == common->at[u])
            continue;
        int64_t place = job_of(new, u, seen->at[u]);
        if (place < last) {
            for (int64_t v = 0; v < k; v++)
                common->at[v] = least(common->at[v], seen->at[v]);
            break;
        }
        last = place;
        seen->at[u]++;
    }
}
