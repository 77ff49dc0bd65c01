"""The records that the store keeps beside entries and tenures."""
