"""What reads wait for: ``python -m bench.isolation``.

Three arms in one run.  *Solo unsliced*: one runtime whose activations take all their input, the shape of systems
without an interactive runtime.  *Solo sliced*: one runtime as it is.  *Two runtimes*.  Solo is never slowed to make a
ratio.

Arrivals are open-loop and a latency counts from the intended start, so that a stall is charged to every read that it
delays; a read that the window's end finds unanswered counts with its age.  A quantile q is stated only with at least
10 / (1 - q) samples.  Kernels are warm.  Load is at most 30 % of a capacity that is measured first.
"""
