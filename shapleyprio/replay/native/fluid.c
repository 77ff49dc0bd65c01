/* The fluid approximation of coalitions' values (see fluid.py). */

#include <string.h>

#include "native.h"

typedef struct {
    Floats demand;
    Floats owned;
    Floats worth;
} Fluid;

/* Adds an organization's demand and processors to a coalition's, which lie behind each other. */
static void join(const Fluid *fluid, int64_t u, double *coalition) {
    int64_t bins = fluid->demand.n[1];
    for (int64_t b = 0; b < bins; b++) {
        coalition[b] += fluid->demand.at[u * bins + b];
        coalition[bins + b] += fluid->owned.at[u * bins + b];
    }
}

/* Adds what flows through a coalition's processors, times a factor, to three values. */
static void flow(const Fluid *fluid, const double *coalition, double factor, double *values) {
    int64_t bins = fluid->demand.n[1];
    double backlog = 0;
    for (int64_t b = 0; b < bins; b++) {
        double wanted = coalition[b] + backlog, owned = coalition[bins + b];
        double running = owned < wanted ? owned : wanted;
        backlog = wanted - running;
        for (int64_t i = 0; i < 3; i++)
            values[i] += factor * running * fluid->worth.at[3 * b + i];
    }
}

static size_t bytes_of(const Fluid *fluid) { return 2 * (size_t)fluid->demand.n[1] * sizeof(double); }

EXPORTED void fluid_flow(const Fluid *fluid, const Bools *coalitions, const Floats *work,
                         const Floats *values) {
    int64_t k = coalitions->n[1];
    for (int64_t c = 0; c < coalitions->n[0]; c++) {
        memset(work->at, 0, bytes_of(fluid));
        for (int64_t u = 0; u < k; u++)
            if (coalitions->at[c * k + u])
                join(fluid, u, work->at);
        flow(fluid, work->at, 1, values->at + 3 * c);
    }
}

/* Returns the lowest bit that is set; k if there is none. */
static int64_t lowest(int64_t c, int64_t k) {
    int64_t u = 0;
    while (u < k && (c >> u & 1) == 0)
        u++;
    return u;
}

EXPORTED void fluid_flow_all(const Fluid *fluid, const Floats *work, const Floats *values) {
    /* in the order of their numbers: while coalitions have the lowest member u, work[u] holds what
       its members from u on bring together */
    int64_t k = fluid->demand.n[0], size = 2 * fluid->demand.n[1];
    for (int64_t c = 1; c < values->n[0]; c++) {
        int64_t u = lowest(c, k);
        memcpy(work->at + u * size, work->at + lowest(c & (c - 1), k) * size, bytes_of(fluid));
        join(fluid, u, work->at + u * size);
        flow(fluid, work->at + u * size, 1, values->at + 3 * c);
    }
}

EXPORTED void fluid_join(const Fluid *fluid, const Ints *orderings, const Floats *work,
                         const Floats *gains) {
    int64_t k = fluid->demand.n[0];
    for (int64_t o = 0; o < orderings->n[0]; o++) {
        memset(work->at, 0, bytes_of(fluid));
        for (int64_t place = 0; place < k; place++) {
            int64_t u = orderings->at[o * k + place];
            if (place > 0)
                flow(fluid, work->at, -1, gains->at + 3 * u);
            join(fluid, u, work->at);
            flow(fluid, work->at, 1, gains->at + 3 * u);
        }
    }
}
