"""Kernels load on first use, from any thread, and take no other layout than stated."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from eddyline.kernels.kernel import kernel
from eddyline.kernels.signatures import I64, VOID, read, write


def double(values: np.ndarray, out: np.ndarray) -> None:
    for i in range(values.shape[0]):
        out[i] = 2 * values[i]


def test_a_first_call_from_many_threads_loads_once() -> None:
    doubled = kernel(VOID(read(I64), write(I64)), short=True)(double)
    failures: list[BaseException] = []
    barrier = threading.Barrier(6)

    def call() -> None:
        values, out = np.arange(5), np.empty(5, np.int64)
        barrier.wait()
        try:
            doubled(values, out)
            doubled.short(values, out)
        except Exception as error:  # noqa: BLE001 - whatever it is fails the test
            failures.append(error)

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(doubled.dispatcher.signatures) == len(doubled.short.dispatcher.signatures) == 1


def test_read_only_and_writable_inputs_share_a_signature_and_others_are_refused() -> None:
    doubled = kernel(VOID(read(I64), write(I64)))(double)
    values, out = np.arange(5), np.empty(5, np.int64)
    doubled(values, out)
    values.flags.writeable = False
    doubled(values, out)
    assert out.tolist() == [0, 2, 4, 6, 8]
    for wrong in (values.astype(np.float64), np.arange(10)[::2]):
        with pytest.raises(TypeError):
            doubled(wrong, out)
