# Makes of a log in the Standard Workload Format what sacct prints, for `shapleyprio rehearse`; each
# user has an account:
#
#     zcat LOG.swf.gz | TZ=UTC awk -f swf.awk > LOG.sacct

function at(second) { return strftime("%Y-%m-%dT%H:%M:%S", begin + second) }

BEGIN {
    OFS = "|"
    print "User", "JobID", "Submit", "Start", "End", "TimelimitRaw", "ElapsedRaw", "ReqCPUS",
        "Account", "Partition"
}

/^; *UnixStartTime:/ { begin = $3 }

!/^;/ && $3 >= 0 && int($4) > 0 && $5 > 0 {
    start = $2 + $3
    limit = $9 > 0 ? int(($9 + 59) / 60) : "UNLIMITED"
    print "user" $12, $1, at($2), at(start), at(start + int($4)), limit, int($4), $5,
        "user" $12, "all"
}
