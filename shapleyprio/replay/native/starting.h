/* What starting and ending of a job changes in a coalition, whichever processors it may get. */

#ifndef SHAPLEYPRIO_STARTING_H
#define SHAPLEYPRIO_STARTING_H

#include "running.h"

/* Gives free processors to a job, in a bay if there are bays, until it ends. In the schedule that
 * is written down it is decided and noted whose they are. */
void put_job_to_work(const World *world, int64_t c, int64_t t, int64_t job, int64_t bay,
                     int64_t free, int64_t processors);

/* Counts processors that started working for u. */
void count_start(const World *world, int64_t c, int64_t t, int64_t u, int64_t processors);

/* Frees the processors of the jobs that end at t. */
void end_jobs(const World *world, int64_t c, int64_t t);

/* Returns when processors for a job that does not fit are there, and how many will be left over.
 *
 * free: those that it could get now.
 * partition: of the job, if there are bays.
 *
 * Running jobs are expected to end when their estimates say, overdue ones in the next second. */
typedef struct {
    int64_t until, spare;
} Reservation;

Reservation reservation_for(const World *world, int64_t c, int64_t t, int64_t width, int64_t free,
                            int64_t partition);

#endif
