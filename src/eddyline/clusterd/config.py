"""What a ``clusterd`` process is told when it is started."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.compute.layout import RuntimeConfig, WorkerLayout, interactive_layout, runtime_layout
from eddyline.errors import make_error

__all__ = ["ClusterdConfig", "add_arguments", "clusterd_config"]

_DESCRIPTION = """\
Hosts the workers of one replica of an Eddyline database, or of one process of it.

A database starts such processes itself; start one by hand to watch it, or to run it under another supervisor.  It
listens at a Unix socket for its controller, maintains the views that it is told to, and answers reads.  It keeps
nothing on disk: when it is started anew, it is told everything again and rebuilds its state from the database.
"""
_EPILOG = """\
examples:
  one process, two workers, one runtime:
    eddyline clusterd --listen /tmp/r1/control --workers 2
  the same with a runtime of its own for reads, which never waits for maintenance:
    eddyline clusterd --listen /tmp/r1/control --workers 2 \\
        --interactive-compute-timely-config '{"workers": 2}'
  the second of two processes:
    eddyline clusterd --listen /tmp/r1/control1 --process 1 --hash-seed 7 \\
        --compute-timely-config '{"workers": 2, "processes": 2, "addresses": ["/tmp/r1/m0", "/tmp/r1/m1"]}'

exit status: 0 after SIGTERM, SIGINT or --orphan-seconds without a controller; 2 for wrong arguments; 70 after a failure
of any thread; 71 when another process of the replica is gone; 73 if the socket cannot be had.
"""


@dataclass(frozen=True, slots=True)
class ClusterdConfig:
    """``interactive`` None: one runtime.  ``ready_fd``: gets one byte, then is closed, once the process listens."""

    listen: str
    compute: RuntimeConfig
    interactive: RuntimeConfig | None = None
    hash_seed: int | None = None
    orphan_seconds: float = 60.0
    ready_fd: int | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--listen", required=True, metavar="PATH", help="Unix socket for the controller; a stale file is replaced")
    add("--process", type=int, default=0, metavar="N", help="ordinal of this process in its replica (0)")
    add("--workers", type=int, metavar="W", help="worker threads of each runtime in this process (1)")
    add(
        "--compute-timely-config",
        metavar="JSON",
        help='layout of the (maintenance) runtime: {"workers": W, "processes": P, "addresses": [one socket a process]}',
    )
    add(
        "--interactive-compute-timely-config",
        metavar="JSON",
        help="the same for the interactive runtime, with addresses of its own; without it there is one runtime",
    )
    add("--hash-seed", type=int, metavar="N", help="the same for all processes of a replica; needed for several")
    add(
        "--orphan-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="ends itself after so long without a controller (60)",
    )
    add("--ready-fd", type=int, metavar="FD", help="file descriptor that is told when the process listens")


def clusterd_config(arguments: argparse.Namespace | Sequence[str]) -> ClusterdConfig:
    """The parsed arguments, checked.  22023 for values that do not fit together."""
    if not isinstance(arguments, argparse.Namespace):
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        arguments = parser.parse_args(list(arguments))
    process, text = arguments.process, arguments.compute_timely_config
    if text is None:
        workers = 1 if arguments.workers is None else arguments.workers
        if workers < 1:
            raise make_error("22023", f"--workers must be at least 1, not {workers}")
        if process:
            hint = "Give --compute-timely-config with the addresses of all processes."
            raise make_error("22023", f"process {process} of a replica of one process", hint=hint)
        compute = RuntimeConfig(WorkerLayout(workers, 1), 0, ())
    else:
        compute = runtime_layout(text, process=process)
        if arguments.workers not in (None, compute.layout.workers):
            raise make_error("22023", f"--workers {arguments.workers} differs from --compute-timely-config")
    interactive = interactive_layout(arguments.interactive_compute_timely_config, compute.layout, process=process)
    several = compute.layout.processes > 1
    if several and interactive is not None:
        interactive = runtime_layout(arguments.interactive_compute_timely_config, process=process)
        if set(interactive.addresses) & set(compute.addresses):
            raise make_error("22023", "the two runtimes need addresses of their own")
    if several and arguments.hash_seed is None:
        hint = "All processes must agree who owns a row: give each the same --hash-seed."
        raise make_error("22023", "several processes without --hash-seed", hint=hint)
    return ClusterdConfig(
        listen=arguments.listen,
        compute=compute,
        interactive=interactive,
        hash_seed=arguments.hash_seed,
        orphan_seconds=arguments.orphan_seconds,
        ready_fd=arguments.ready_fd,
    )
