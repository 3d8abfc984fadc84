#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rc11.py gives the verdicts that are known of litmus tests under RC11."""

import sys

sys.dont_write_bytecode = True

from rc11 import ACQ, ACQ_REL, F, NA, NONE, R, REL, RLX, SC, U, W, Program, explore  # noqa: E402


def program(threads, outcome):
    """outcome: what the threads return in the execution in question."""
    return Program({'x': 0, 'y': 0}, [('P%d' % n, body) for n, body in enumerate(threads)],
                   lambda results, final: 'seen' if outcome(results, final) else None)


def store_then_load(order_store, order_load, fence):
    def body(mine, other):
        yield W(mine, 1, order_store)
        yield F(fence)
        return (yield R(other, order_load))
    return program([lambda: body('x', 'y'), lambda: body('y', 'x')], lambda r, _: r == [0, 0])


def message(order_store, order_load, fence_store=NONE, fence_load=NONE, data=RLX):
    def writer():
        yield W('x', 1, data)
        yield F(fence_store)
        yield W('y', 1, order_store)

    def reader():
        seen = yield R('y', order_load)
        yield F(fence_load)
        return (seen, (yield R('x', data))) if seen else None
    return program([writer, reader], lambda r, _: r[1] == (1, 0))


def load_buffering():
    def body(mine, other):
        loaded = yield R(other, RLX)
        yield W(mine, 1, RLX)
        return loaded
    return program([lambda: body('x', 'y'), lambda: body('y', 'x')], lambda r, _: r == [1, 1])


def two_readers(order, fence=NONE):
    """IRIW."""
    def writer(loc):
        yield W(loc, 1, SC if order == SC else REL)

    def reader(first, second):
        a = yield R(first, order)
        yield F(fence)
        return a, (yield R(second, order))
    return program([lambda: writer('x'), lambda: writer('y'), lambda: reader('x', 'y'),
                    lambda: reader('y', 'x')], lambda r, _: r[2] == r[3] == (1, 0))


def two_writers(order):
    """2+2W."""
    def body(first, second):
        yield W(first, 1, order)
        yield W(second, 2, order)
    return program([lambda: body('x', 'y'), lambda: body('y', 'x')],
                   lambda r, final: final == {'x': 1, 'y': 1})


def read_twice():
    """CoRR."""
    def writer():
        yield W('x', 1, RLX)

    def reader():
        return (yield R('x', RLX)), (yield R('x', RLX))
    return program([writer, reader], lambda r, _: r[1] == (1, 0))


def release_sequence(is_update):
    """A third thread, or the releasing one itself, stores after the release."""
    def writer():
        yield W('x', 1, NA)
        yield W('y', 1, REL)
        if not is_update:
            yield W('y', 2, RLX)

    def updater():
        if is_update:
            yield U('y', lambda old: 2 if old == 1 else None, RLX)

    def reader():
        if (yield R('y', ACQ)) == 2:
            yield R('x', NA)
    return program([writer, updater, reader], lambda r, _: False)


def counter():
    def body():
        return (yield U('x', lambda old: old + 1, RLX))
    return program([body, body], lambda r, _: r[0] == r[1])


def z6u():
    """SEQ_CST accesses that a release-acquire pair of the same location joins (RC11, 2.1)."""
    def first():
        yield W('x', 1, SC)
        yield W('y', 1, REL)

    def second():
        old = yield U('y', lambda old: old + 1, SC)
        return old, (yield R('y', RLX))

    def third():
        yield W('y', 3, SC)
        return (yield R('x', SC))
    return program([first, second, third], lambda r, _: r[1:] == [(1, 3), 0])


def wait_for_both():
    """The first of two loads waits: no execution passes it without the store."""
    def writer():
        yield W('x', 1, NA)
        yield W('y', 1, REL)

    def reader():
        yield R('y', ACQ, lambda value: value == 1)
        return (yield R('x', NA))
    return program([writer, reader], lambda r, _: r[1] == 0)


# What it is, the program, and whether the outcome, or a race, is permitted.
TESTS = [
    ('SB relaxed', store_then_load(RLX, RLX, NONE), True),
    ('SB release-acquire', store_then_load(REL, ACQ, NONE), True),
    ('SB with acq_rel fences', store_then_load(RLX, RLX, ACQ_REL), True),
    ('SB with seq_cst fences', store_then_load(RLX, RLX, SC), False),
    ('SB seq_cst', store_then_load(SC, SC, NONE), False),
    ('SB of seq_cst stores', store_then_load(SC, ACQ, NONE), True),
    ('MP relaxed', message(RLX, RLX), True),
    ('MP release-acquire', message(REL, ACQ), False),
    ('MP release only', message(REL, RLX), True),
    ('MP with fences', message(RLX, RLX, REL, ACQ), False),
    ('MP with one fence', message(RLX, RLX, REL), True),
    ('MP of plain data, relaxed', message(RLX, RLX, data=NA), True),
    ('MP of plain data, release-acquire', message(REL, ACQ, data=NA), False),
    ('LB relaxed', load_buffering(), False),
    ('IRIW acquire', two_readers(ACQ), True),
    ('IRIW with seq_cst fences', two_readers(RLX, SC), False),
    ('IRIW seq_cst', two_readers(SC), False),
    ('2+2W release', two_writers(REL), True),
    ('2+2W seq_cst', two_writers(SC), False),
    ('CoRR', read_twice(), False),
    ('release sequence through an update', release_sequence(True), False),
    ('release sequence of the same thread', release_sequence(False), True),
    ('updates are atomic', counter(), False),
    ('Z6.U', z6u(), True),
    ('a load that waits', wait_for_both(), False),
]


def main():
    failed = 0
    for name, test, is_permitted in TESTS:
        found, _ = explore(test)
        if (found is not None) != is_permitted:
            print('rc11_test.py: %s: %s, expected: %s' % (name, found and found[0], is_permitted))
            failed += 1
    print('rc11_test.py: %d litmus tests, %d with another verdict' % (len(TESTS), failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
