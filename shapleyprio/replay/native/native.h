/* How arrays and named tuples of them arrive from Python, and how functions are offered to it; see
 * __init__.py. */

#ifndef SHAPLEYPRIO_NATIVE_H
#define SHAPLEYPRIO_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

/* C-contiguous elements and the shape, behind the last dimension ones. */
typedef struct { int64_t *at; int64_t n[3]; } Ints;
typedef struct { int32_t *at; int64_t n[3]; } Ints32;
typedef struct { uint64_t *at; int64_t n[3]; } Words;
typedef struct { double *at; int64_t n[3]; } Floats;
typedef struct { uint8_t *at; int64_t n[3]; } Bools;
typedef struct { uint8_t *at; int64_t n[3]; } Bytes;

/* A time that does not come. */
#define NEVER ((int64_t)1 << 62)

#define EXPORTED __attribute__((visibility("default")))

#endif
