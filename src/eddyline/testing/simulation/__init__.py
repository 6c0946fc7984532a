"""The seeded stepper: one random sequence drives a database without threads, every answer and invariant checked."""
