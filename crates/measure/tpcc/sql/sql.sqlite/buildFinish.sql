-- What the planner must know.

analyze;
