#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The ordering protocols of drivers/soft as litmus tests, checked under the C11 memory model.

The memory order of each access is taken from the source, from the statement that litmus_source.py
lists: a test explores the source. A statement that is missing or was moved ends the check; a
missing fence is the order NONE. doc/memory_order.md describes the protocols.

Each test must hold, and must fail with each of its faults. Each access must be needed as it is:
with the next weaker order some test fails, or SPARE has the reason.
"""

import sys

sys.dont_write_bytecode = True

import litmus_c  # noqa: E402 (in this folder)
from litmus_source import CALL, read_source, weaker  # noqa: E402 (in this folder)
from rc11 import (ACQ, ACQ_REL, F, NA, NONE, R, REL, RLX, SC, U, W,  # noqa: E402
                  Program, explore)

# Why an access is stronger than the tests need.
_FENCE = 'the fence of the grace period follows'
SPARE = {
    'dereg.word': _FENCE,
    'invalidate.word': _FENCE + '; on x86 the locked instruction is that fence',
    'attach.producers': _FENCE,
    'start.token': 'a fence precedes it; on x86 that is one of the compiler only',
    'wait.token': 'a fence precedes it',
    'quiesce.peer': 'NULL publishes nothing',
    'event.end': 'release is enough; it is on no data path',
    'unwatch.again': 'acquire is enough; it is on no data path',
    'peer.load': 'it acquires the QP that a connect stored, which no test has',
}

TESTS = []


def test(*faults):
    """A test is a function of the orders that returns a Program. A fault: what it is, and orders
    that are changed; a name that is no access selects another variant of the test."""
    def add(build):
        TESTS.append((build, faults))
        return build
    return add


def announce(o, call, lcore):
    token = yield R('token', o['enter.token'])
    if o[call] != NONE:
        yield W(lcore, token, o['enter.inside'])


def enter(o, lcore='in.A'):
    yield from announce(o, 'enter.announce', lcore)
    yield F(o['enter.fence'])


def enter_lock(o, lcore='in.A'):
    yield from announce(o, 'enter_lock.announce', lcore)
    if o['enter_lock.lock'] != NONE:
        yield U('lock', lambda ticket: ticket + 1, RLX)
    yield F(o['start.fence'] if o['enter_lock.call'] != NONE else NONE)


def leave(o, lcore='in.A'):
    yield W(lcore, 0, o['leave.inside'])


def quiescent(o, lcore='in.A'):
    token = yield R('token', o['quiescent.token'])
    yield W(lcore, token, o['quiescent.inside'])


def use(o):
    """An access by the key of word 1, to its memory."""
    if (yield R('word', o['access.word'])) == 1:
        yield R('memory', NA)


def next_token(order):
    return U('token', lambda token: token + 1, order)


def is_over(token):
    return lambda seen: seen == 0 or seen >= token


def wait(o, lcores=('in.A',)):
    yield F(o['wait.fence'])
    token = (yield next_token(o['wait.token'])) + 1
    for lcore in lcores:
        yield R(lcore, o['check.inside'], is_over(token))


def start(o):
    """rsoft_grace_start() of one lcore, and its end; the other lcore is A."""
    yield F(o['start.fence'] if o['start.call'] != NONE else NONE)
    if (yield R('nb_lcores', o['start.nb_lcores'])) == 1:
        return
    token = (yield next_token(o['start.token'])) + 1
    yield from quiescent(o, 'in.B')
    if (yield R('lcores', o['check.lcores'])) & 1:
        yield R('in.A', o['check.inside'], is_over(token))


def swap(old, new):
    return lambda word: new if word == old else None


def fine(results, final):
    """Data races are all that can be wrong."""


@test(('no fence in rsoft_grace_wait()', {'wait.fence': NONE, 'dereg.word': ACQ_REL}),
      ('no fence where an lcore goes inside', {'enter.fence': NONE}))
def dereg(o):
    """rmem_mr_dereg() against an lcore that uses the key, leaves, and is inside again."""
    def lcore():
        yield from enter(o)
        yield from use(o)
        yield from leave(o)
        yield from enter(o)

    def control():
        yield U('word', swap(1, 0), o['dereg.word'])
        yield from wait(o)
        yield W('memory', 1, NA)
    return Program({'token': 1, 'in.A': 0, 'word': 1, 'memory': 0},
                   [('lcore', lcore), ('control', control)], fine)


@test(('no fence in rsoft_grace_wait()', {'wait.fence': NONE, 'dereg.word': ACQ_REL}),
      ('no fence where an lcore goes inside with a lock', {'enter_lock.call': NONE}),
      ('an lcore that takes the lock alone', {'enter_lock.announce': NONE}))
def dereg_lock(o):
    """rmem_mr_dereg() against an lcore that enters with a lock, as a post does."""
    def lcore():
        yield from enter_lock(o)
        yield from use(o)
        yield from leave(o)

    def control():
        yield U('word', swap(1, 0), o['dereg.word'])
        yield from wait(o)
        yield W('memory', 1, NA)
    return Program({'token': 1, 'in.A': 0, 'word': 1, 'memory': 0, 'lock': 0},
                   [('lcore', lcore), ('control', control)], fine)


@test(('no fence in rsoft_grace_wait()', {'wait.fence': NONE, 'dereg.word': ACQ_REL}))
def quiescence(o):
    """The same against an lcore that stays inside, and holds nothing in between."""
    def lcore():
        yield from enter(o)
        yield from use(o)
        yield from quiescent(o)
        yield from use(o)
        yield from leave(o)

    def control():
        yield U('word', swap(1, 0), o['dereg.word'])
        yield from wait(o)
        yield W('memory', 1, NA)
    return Program({'token': 1, 'in.A': 0, 'word': 1, 'memory': 0},
                   [('lcore', lcore), ('control', control)], fine)


@test(('no fence in rsoft_grace_start()', {'start.call': NONE}))
def local_inv(o):
    """LOCAL_INV by one lcore while another one registers and uses the key."""
    def lcore():
        yield U('lcores', lambda bits: bits | 1, o['register.lcores'])
        yield U('nb_lcores', lambda nb: nb + 1, o['register.nb_lcores'])
        yield from enter(o)
        yield from use(o)
        yield from leave(o)

    def inv():
        yield U('word', swap(1, 2), o['invalidate.word'])
        yield from start(o)
        yield W('memory', 1, NA)
    return Program({'token': 1, 'in.A': 0, 'in.B': 1, 'lcores': 2, 'nb_lcores': 1, 'word': 1,
                    'memory': 0}, [('lcore', lcore), ('inv', inv)], fine)


@test(('a wait that uses the tokens which another one has seen', {'acked': True}))
def overlap(o):
    """Two grace periods; the earlier one loads the token of A before A enters."""
    def first():
        yield from enter(o)
        yield from use(o)
        yield from leave(o)

    def second():
        yield from enter(o, 'in.B')

    def earlier():
        yield F(o['wait.fence'])
        token = (yield next_token(o['wait.token'])) + 1
        seen = []
        for lcore in ('in.A', 'in.B'):
            seen.append((yield R(lcore, o['check.inside'], is_over(token))))
        if o['acked'] and any(seen):
            yield W('acked', min(token for token in seen if token), SC)

    def later():
        yield U('word', swap(1, 0), o['dereg.word'])
        yield F(o['wait.fence'])
        token = (yield next_token(o['wait.token'])) + 1
        if not o['acked'] or (yield R('acked', SC)) < token:
            for lcore in ('in.A', 'in.B'):
                yield R(lcore, o['check.inside'], is_over(token))
        yield W('memory', 1, NA)
    return Program({'token': 1, 'in.A': 0, 'in.B': 0, 'acked': 0, 'word': 1, 'memory': 0},
                   [('A', first), ('B', second), ('earlier', earlier), ('later', later)], fine)


@test(('FREE before the grace period', {'early': True}))
def key_again(o):
    """A lease ends and its key is bound again, by REG_MR of another lcore: word 1, BUSY 2, FREE 0,
    word 3. The former buffer belongs to the program again."""
    def peer():
        yield from enter(o)
        word = yield R('word', o['access.word'])
        if word in (1, 3):
            base = yield R('base', NA)
            yield R('memory%d' % base, NA)
        yield from leave(o)
        return (word, base) if word in (1, 3) else None

    def inv():
        yield U('word', swap(1, 2), o['invalidate.word'])
        if not o['early']:
            yield from start(o)
        yield W('mr', 0, NA)
        yield W('memory1', 1, NA)
        yield W('word', 0, o['release.word'])

    def reg_mr():
        yield R('word', o['take.load'], lambda word: word == 0)
        yield U('word', swap(0, 2), o['take.word'])
        yield W('mr', 1, NA)
        yield W('base', 3, NA)
        yield W('word', 3, o['reg_mr.word'])

    def check(results, final):
        if results[0] in ((1, 3), (3, 1)):
            return 'the new key leads to the former buffer, or conversely'
        return None
    return Program({'token': 1, 'in.A': 0, 'in.B': 1, 'lcores': 3, 'nb_lcores': 2, 'word': 1,
                    'base': 1, 'mr': 1, 'memory1': 0, 'memory3': 0},
                   [('peer', peer), ('inv', inv), ('reg_mr', reg_mr)], check)


def reserve(o):
    """rsoft_cq_reserve() and the write of the first entry."""
    if (yield R('nb_producers', o['reserve.producers'])) != 1:
        at = yield U('prod', lambda prod: prod + 1, o['reserve.add'])
    else:
        at = yield R('prod', o['reserve.load'])
        yield W('prod', at + 1, o['reserve.store'])
    return at


def same_entry(results, final):
    if results[0] is not None and results[0] == results[1]:
        return 'two completions in one entry'
    return None


@test(('no grace period', {'attach.wait': NONE}),
      ('no fence in rsoft_grace_wait()', {'wait.fence': NONE, 'attach.producers': ACQ_REL}))
def attach(o):
    """A second queue completes to a CQ while the first one does. The program hands its QP to
    another lcore."""
    def first():
        yield from enter(o)
        at = yield from reserve(o)
        yield from leave(o)
        return at

    def second():
        if (yield R('qp', ACQ)) == 1:
            return (yield from reserve(o))
        return None

    def control():
        yield U('nb_producers', lambda nb: nb + 1, o['attach.producers'])
        if o['attach.wait'] != NONE:
            yield from wait(o)
        yield W('qp', 1, REL)
    return Program({'token': 1, 'in.A': 0, 'nb_producers': 1, 'prod': 0, 'qp': 0},
                   [('first', first), ('second', second), ('control', control)], same_entry)


@test(('nb_producers loaded relaxed', {'reserve.producers': RLX}),
      ('no grace period', {'quiesce.wait': NONE}))
def detach(o):
    """The last but one queue of a CQ is destroyed: its peer has just completed a receive."""
    def remaining():
        return (yield from reserve(o))

    def peer():
        yield from enter(o)
        at = None
        if (yield R('peer', o['peer.load'])) == 1:
            at = yield from reserve(o)
        yield from leave(o)
        return at

    def control():
        yield W('peer', 0, o['quiesce.peer'])
        if o['quiesce.wait'] != NONE:
            yield from wait(o)
        yield U('nb_producers', lambda nb: nb - 1, o['detach.producers'])
    return Program({'token': 1, 'in.A': 0, 'nb_producers': 2, 'prod': 0, 'peer': 1},
                   [('remaining', remaining), ('peer', peer), ('control', control)], same_entry)


@test(('a number stored relaxed', {'write.number': RLX}))
def cq_ring(o):
    """Two producers and the consumer of a CQ with one entry, which holds completion 0. The one at
    place 2 loads cons for the other."""
    def room(place):
        cons = yield R('cons_cached', o['space.cached'])
        if place - cons > 0:
            cons = yield R('cons', o['space.cons'])
            yield W('cons_cached', cons, o['space.store'])
        return place - cons <= 0

    def producer(place):
        if (yield from room(place)):
            yield W('entry', place, NA)
            yield W('number', place + 1, o['write.number'])

    def consumer():
        for place in (0, 1):
            yield R('number', o['poll.number'], lambda number, place=place: number == place + 1)
            yield R('entry', NA)
            yield W('cons', place + 1, o['poll.cons'])
    return Program({'entry': 0, 'number': 1, 'cons': 0, 'cons_cached': 0},
                   [('first', lambda: producer(1)), ('second', lambda: producer(2)),
                    ('consumer', consumer)], fine)


@test(('prod loaded with acquire by the flush', {'flush.prod': ACQ}),
      ('the state loaded with acquire by the post', {'post.state': ACQ}))
def flush(o):
    """A receive is posted while the QP moves to ERR: one of the two threads flushes it."""
    def flush_all():
        yield U('lock', swap(0, 1), ACQ, want=lambda lock: lock == 0)
        cons = yield R('cons', RLX)
        seen = yield R('prod', o['flush.prod'])
        if cons == seen:
            seen = yield R('prod', o['head.prod'])
        if cons != seen:
            yield R('receive', NA)
            yield W('cons', cons + 1, RLX)
        yield W('lock', 0, REL)

    def post():
        yield W('receive', 1, NA)
        yield U('prod', lambda prod: 1, o['post.prod'])
        if (yield R('state', o['post.state'])) == 1:
            yield from flush_all()
        return True

    def fail():
        yield U('state', swap(0, 1), o['to_err.state'])
        yield from flush_all()
        return True

    def check(results, final):
        if all(results) and final['cons'] != 1:
            return 'a receive stays in a QP in ERR'
        return None
    return Program({'receive': 0, 'prod': 0, 'cons': 0, 'state': 0, 'lock': 0},
                   [('post', post), ('fail', fail)], check)


@test(('prod loaded relaxed', {'head.prod': RLX}))
def receive(o):
    """A message takes a receive that was posted on another lcore."""
    def post():
        yield W('receive', 1, NA)
        yield U('prod', lambda prod: 1, o['post.prod'])

    def message():
        if (yield R('prod', o['head.prod'])) == 1:
            yield R('receive', NA)
    return Program({'receive': 0, 'prod': 0}, [('post', post), ('message', message)], fine)


@test(('the slot cleared with release', {'unwatch.slot': REL}),
      ('the pass begun with release', {'event.begin': ACQ_REL}))
def unwatch(o):
    """An on-demand MR is freed while the thread that reads events of userfaultfd uses its table."""
    def event():
        yield U('pass', lambda number: number + 1, o['event.begin'])
        if (yield R('slot', o['event.slot'])) == 1:
            yield R('table', NA)
        yield U('pass', lambda number: number + 1, o['event.end'])

    def control():
        yield W('slot', 0, o['unwatch.slot'])
        number = yield R('pass', o['unwatch.pass'])
        if number & 1:
            yield R('pass', o['unwatch.again'], lambda now: now != number)
        yield W('table', 1, NA)
    return Program({'pass': 0, 'slot': 1, 'table': 0}, [('event', event), ('control', control)],
                   fine)


@test(('head stored relaxed', {'release.head': RLX}))
def shm_ring(o):
    """Two packets through one slot of a ring of port=shm."""
    def writer():
        yield W('slot', 1, NA)
        yield W('number', 1, o['put.number'])
        yield R('head', o['get.head'], lambda head: head == 1)
        yield W('slot', 2, NA)
        yield W('number', 2, o['put.number'])

    def reader():
        for position in (1, 2):
            yield R('number', o['ready.number'], lambda number, want=position: number == want)
            yield R('slot', NA)
            yield W('head', position, o['release.head'])
    return Program({'slot': 0, 'number': 0, 'head': 0}, [('writer', writer), ('reader', reader)],
                   fine)


@test(('no fence in rwire_ring_must_wake()', {'wake.fence': NONE}),
      ('no fence in rwire_ring_sleep()', {'sleep.fence': NONE}))
def shm_sleep(o):
    """A packet is put while the reader prepares to sleep: it finds the packet, or gets a doorbell."""
    def writer():
        yield W('number', 1, o['put.number'])
        yield F(o['wake.fence'])
        if (yield R('is_asleep', o['wake.load'])) == 0:
            return False
        return (yield U('is_asleep', lambda is_asleep: 0, o['wake.exchange'])) == 1

    def reader():
        yield W('is_asleep', 1, o['sleep.store'])
        yield F(o['sleep.fence'])
        return (yield R('number', o['ready.number'])) == 0

    def check(results, final):
        if results == [False, True]:
            return 'the reader sleeps, and gets no doorbell'
        return None
    return Program({'number': 0, 'is_asleep': 0}, [('writer', writer), ('reader', reader)], check)


class Orders(dict):
    """The order of each access; `asked` are the names that were read."""

    def __init__(self, orders, changes):
        super().__init__(orders)
        self.update(changes)
        self.asked = set()

    def __getitem__(self, name):
        self.asked.add(name)
        return self.get(name)


def run(build, orders, changes=()):
    asked = Orders(orders, dict(changes))
    found, ended = explore(build(asked))
    return found, ended, asked.asked


def written(orders):
    """The tests, and each with each of its faults, as litmus_c.write() takes them."""
    for build, faults in TESTS:
        for number, (what, changes) in enumerate([(build.__doc__, {})] + list(faults)):
            yield (build.__name__ + ('_fault%d' % number if number else ''),
                   lambda build=build, changes=changes: build(Orders(orders, changes)),
                   what, number == 0)


def main():
    orders = read_source()
    if sys.argv[1:2] == ['--write'] and len(sys.argv) == 3:
        litmus_c.write(sys.argv[2], list(written(orders)))
        return 0
    if len(sys.argv) > 1:
        sys.exit('usage: litmus.py [--write FOLDER]')
    failed, uses, needed = 0, {}, 0
    for build, faults in TESTS:
        name = build.__name__
        found, ended, asked = run(build, orders)
        uses[build] = asked
        if found is not None:
            what, graph = found
            print('%s: %s\n%s' % (name, what, graph.text(build(Orders(orders, {})).names)))
            failed += 1
            continue
        for what, changes in faults:
            if run(build, orders, changes)[0] is None:
                print('%s: does not find: %s' % (name, what))
                failed += 1
        print('%-10s %5d executions, holds; %d faults' % (name, ended, len(faults)))
    if failed:
        return 1
    for name, order in orders.items():
        builds = [build for build, _ in TESTS if name in uses[build]]
        if order != CALL and not builds:
            print('%s: no test has it' % name)
            failed += 1
        spare = [less for less in weaker(name, order)
                 if all(run(build, orders, {name: less})[0] is None for build in builds)]
        if spare and name not in SPARE:
            print('%s: no test needs more than %s, and SPARE has no reason' % (name, spare[-1]))
            failed += 1
        if name in SPARE and not spare:
            print('%s: needed, and yet in SPARE' % name)
            failed += 1
        needed += bool(weaker(name, order)) and not spare
    print('litmus.py: %d tests, %d accesses, %d of these with an order that is needed, %d failures'
          % (len(TESTS), len(orders), needed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
