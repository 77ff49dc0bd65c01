/* Bytes of logs: digits, ends of lines, and where fields are (see columns.py).
 *
 * A log may hold anything. What reads it never looks beyond the end that it is given. */

#ifndef SHAPLEYPRIO_TEXTS_H
#define SHAPLEYPRIO_TEXTS_H

#include "native.h"

enum { UNKNOWN = -1, UNREADABLE = -2 };

/* Fields: number i has the bytes of the text from begin[i] to before end[i]. */
typedef struct {
    Bytes text;
    Ints begin;
    Ints end;
} Fields;

static inline bool is_digit(uint8_t byte) { return '0' <= byte && byte <= '9'; }

/* Returns the number of so many digits, at most 18, else UNREADABLE. */
static inline int64_t digits(const uint8_t *at, int64_t length) {
    int64_t value = 0;
    for (const uint8_t *end = at + length; at < end; at++) {
        if (!is_digit(*at))
            return UNREADABLE;
        value = value * 10 + (*at - '0');
    }
    return value;
}

/* Returns where the digits end that begin here. */
static inline const uint8_t *digits_end(const uint8_t *at, const uint8_t *end) {
    while (at < end && is_digit(*at))
        at++;
    return at;
}

#endif
