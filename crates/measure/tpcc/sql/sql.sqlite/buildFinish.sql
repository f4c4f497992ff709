-- Statistics for the query planner.

analyze;
