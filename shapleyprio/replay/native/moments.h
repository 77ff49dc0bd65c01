/* Sums of part-seconds: moments of events, worths at a moment, and exact comparisons.
 *
 * Moments of the events "w processors start (-w: stop) working at second s" are sum(w), sum(w s)
 * and sum(w s (s - 1) / 2). The last one has a second limb behind it where 64 bits are too few
 * (wide); without one it is known modulo 2^64, and so is all that is made of it. */

#ifndef SHAPLEYPRIO_MOMENTS_H
#define SHAPLEYPRIO_MOMENTS_H

#include "arrays.h"

/* Whole numbers of 128 bits; sums are taken of unsigned ones, modulo 2^128. */
typedef __int128 Whole;
typedef unsigned __int128 Limbs;

/* Rounded values that differ by more are compared by them, nearer ones by 64 or 128 bits. */
#define FAR_APART 0x1p62
#define FAR_APART_WIDE 0x1p126

static inline Limbs joined(int64_t high, int64_t low) {
    return (Limbs)(uint64_t)high << 64 | (uint64_t)low;
}

/* Returns n (n + 1) / 2. */
static inline Whole triangular(int64_t n) { return (Whole)n * (n + 1) / 2; }

/* Returns n (n + 1) / 2 modulo 2^64; n (n + 1) fits into 64 bits where moments have one limb. */
static inline uint64_t short_triangular(int64_t n) {
    return (uint64_t)n * (uint64_t)(n + 1) >> 1;
}

/* Adds processors that start (or, negative, stop) working then. */
static inline void add(int64_t *moments, bool wide, int64_t second, int64_t processors) {
    moments[0] += processors;
    moments[1] += processors * second;
    if (wide) {
        Limbs sum = joined(moments[3], moments[2]);
        sum += (Limbs)triangular(second - 1) * (Limbs)processors;
        moments[2] = (int64_t)sum;
        moments[3] = (int64_t)(sum >> 64);
    } else {
        uint64_t more = (uint64_t)processors * short_triangular(second - 1);
        moments[2] = (int64_t)((uint64_t)moments[2] + more);
    }
}

/* Returns the worth at t of all parts, in part-seconds (SPAA 2013, Eq. 3), modulo 2^64.
 *
 * A part executed at s is worth T(t - s) - T(t - s - 1), with T(n) = n (n + 1) / 2, and T(t - s) is
 * T(t) - t s + T(s - 1). */
static inline uint64_t short_worth(const int64_t *moments, int64_t t) {
    return (uint64_t)moments[0] * short_triangular(t) - (uint64_t)moments[1] * (uint64_t)t +
           (uint64_t)moments[2];
}

/* Returns the same modulo 2^128, of moments of two limbs. */
static inline Limbs long_worth(const int64_t *moments, int64_t t) {
    return (Limbs)triangular(t) * (Limbs)moments[0] - (Limbs)((Whole)moments[1] * t) +
           joined(moments[3], moments[2]);
}

/* Returns the worth as the number that it is, which fits into the limbs of its moments. */
static inline Whole worth(const int64_t *moments, bool wide, int64_t t) {
    return wide ? (Whole)long_worth(moments, t) : (Whole)(int64_t)short_worth(moments, t);
}

/* Returns the unit-size parts completed by t. */
static inline int64_t parts(const int64_t *moments, int64_t t) {
    return moments[0] * t - moments[1];
}

/* Returns whether a value known modulo 2^64 or 2^128 and roughly is less than another such value.
 *
 * Holds as long as the rounded difference is wrong by less than 2^62 or 2^126. */
static inline bool precedes(Limbs exact, double rounded, Limbs best_exact, double best_rounded,
                            bool wide) {
    double apart = rounded - best_rounded, far = wide ? FAR_APART_WIDE : FAR_APART;
    if (apart > far || apart < -far)
        return apart < 0;
    return wide ? (Whole)(exact - best_exact) < 0 : (int64_t)(exact - best_exact) < 0;
}

/* Returns whether used / share < best_used / best_share.
 *
 * Without a share one comes after all that have one, and among its like by what it used. */
static inline bool less_by_share(Whole used, int64_t share, Whole best_used, int64_t best_share) {
    if (share == best_share)
        return used < best_used;
    if (share == 0 || best_share == 0)
        return share > best_share;
    return precedes((Limbs)used * (Limbs)best_share, (double)used * (double)best_share,
                    (Limbs)best_used * (Limbs)share, (double)best_used * (double)share, true);
}

/* Draws a random whole number from 0 to below - 1, each equally likely (SplitMix64). */
static inline int64_t draw(uint64_t *state, int64_t below) {
    uint64_t bound = (uint64_t)below, unfair = (0 - bound) % bound;
    for (;;) {
        uint64_t mixed = *state += UINT64_C(0x9E3779B97F4A7C15);
        mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
        mixed ^= mixed >> 31;
        if (mixed >= unfair)
            return (int64_t)(mixed % bound);
    }
}

#endif
