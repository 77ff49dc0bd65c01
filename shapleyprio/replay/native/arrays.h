/* Rows of arrays, and loops over them. */

#ifndef SHAPLEYPRIO_ARRAYS_H
#define SHAPLEYPRIO_ARRAYS_H

#include <string.h>

#include "native.h"

/* Before a function that loops over rows: it takes four numbers at once where the processor can. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define VECTORIZED __attribute__((target_clones("avx2", "default")))
#else
#define VECTORIZED
#endif

/* Returns the row i of an array of two dimensions. */
static inline int64_t *row(Ints array, int64_t i) { return array.at + i * array.n[1]; }

/* Returns the row i, j of an array of three dimensions. */
static inline int64_t *row_of(Ints array, int64_t i, int64_t j) {
    return array.at + (i * array.n[1] + j) * array.n[2];
}

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
