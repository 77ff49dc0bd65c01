/* Whose free processors a job gets in the schedule that is written down. */

#ifndef SHAPLEYPRIO_PLACING_H
#define SHAPLEYPRIO_PLACING_H

#include "state.h"

/* Chooses processors for a job.
 *
 * record: whose placing it is; of what the job really got, `record->given` is had already.
 * free_of: [k], how many of each owner are free; all together are `free`.
 * given: [k], overwritten with how many of each the job gets.
 * wanted: processors that it gets, not more than are free. */
void give(const Record *record, const int64_t *free_of, int64_t *given, int64_t job, int64_t free,
          int64_t wanted);

#endif
