# SPDX-License-Identifier: BSD-3-Clause
"""Explores small concurrent programs under the C11 memory model.

The model is RC11 (Lahav, Vafeiadis, Kang, Hur, Dreyer: Repairing Sequential Consistency in C/C++11,
PLDI 2017), with the release sequences of C++20: a store of the releasing thread itself does not
continue one. That permits more executions than C11 does, and so proves more.

A thread is a generator function that yields its accesses and receives the values that they load:

    def thread():
        yield W('data', 1, NA)
        if (yield U('lock', lambda old: 1 if old == 0 else None, ACQ)) == 0: ...

RC11 forbids cycles of program order and reads-from. So each of its executions is built by adding
one event after the other, where a load reads from a store that is there already. explore() adds
stores and fences at once, since they never restrict what may follow, and branches over which thread
loads next, from which store, and over the position of a store in the modification order of its
location. Happens-before of an event is final when it is added. Coherence, atomicity and races depend
on it alone and are checked then; the axiom of SEQ_CST accesses is checked for a counterexample only.
"""

import collections

NONE, NA, RLX, ACQ, REL, ACQ_REL, SC = 'none', 'na', 'rlx', 'acq', 'rel', 'acq_rel', 'sc'
_ACQUIRES = (ACQ, ACQ_REL, SC)
_RELEASES = (REL, ACQ_REL, SC)

# An access. value: what a store stores; for U a function of what was loaded: what it stores, or
# None if it does not. want: the value that the load waits for, as a function.
Op = collections.namedtuple('Op', 'kind loc value order fail want')


def R(loc, order, want=None):
    """A load. With want, the last one of a loop that ends by it; the thread stops before it if
    there is no such value."""
    return Op('R', loc, None, order, order, want)


def W(loc, value, order):
    return Op('W', loc, value, order, order, None)


def U(loc, func, order, fail=RLX, want=None):
    """A read-modify-write, or a compare-and-swap, which fails where func returns None."""
    return Op('U', loc, func, order, fail, want)


def F(order):
    """A fence; with NONE, nothing."""
    return Op('F', None, None, order, order, None)


Event = collections.namedtuple('Event', 'id thread kind loc order value source')


class Graph:
    """An execution so far. Sets of events are bits of an int."""

    def __init__(self, program):
        count = len(program.threads)
        self.events = []
        self.before = []     # of each event: those that happen before it
        self.released = []   # of each store: what happens before an acquire that reads it
        self.order = {}      # of each location: its stores in modification order
        self.readers = {}    # of each store: the events that read it
        self.log = [()] * count       # of each thread: what its accesses loaded
        self.last = [0] * count       # of each thread: its events
        self.acquired = [0] * count   # of each thread: what a later acquire fence orders
        self.fenced = [0] * count     # of each thread: what happens before its last release fence
        self.key = [()] * count
        for loc, value in program.init.items():
            self.order[loc] = [self._add(-1, 'W', loc, NA, value, None, 0)]
            self.released[-1] = 0
        self.initial = (1 << len(self.events)) - 1

    def copy(self):
        new = object.__new__(Graph)
        new.__dict__.update(self.__dict__)
        for name in ('events', 'before', 'released', 'log', 'last', 'acquired', 'fenced', 'key'):
            setattr(new, name, list(getattr(self, name)))
        new.order = {loc: list(stores) for loc, stores in self.order.items()}
        new.readers = dict(self.readers)
        return new

    def identity(self):
        """The same for graphs that differ only in the order in which events were added."""
        order = tuple(tuple(self._name(event) for event in stores)
                      for stores in self.order.values())
        return tuple(self.key), order

    def _name(self, number):
        event = self.events[number]
        if event.thread < 0:
            return number
        return event.thread, bin(self.before[number] & self.last[event.thread]).count('1')

    def _add(self, thread, kind, loc, order, value, source, before):
        number = len(self.events)
        self.events.append(Event(number, thread, kind, loc, order, value, source))
        self.before.append(before)
        self.released.append(0)
        return number

    def _floor(self, loc, before):
        """The first place in modification order that coherence leaves to an event."""
        stores = self.order[loc]
        for place in range(len(stores) - 1, -1, -1):
            if (1 << stores[place] | self.readers.get(stores[place], 0)) & before:
                return place
        return 0

    def _is_taken(self, store):
        """Whether a read-modify-write reads the store: no other store can be between the two."""
        return any(self.events[number].kind == 'U' and self.events[number].source == store
                   for number in _bits(self.readers.get(store, 0)))

    def _next(self, thread):
        return self.initial | self.last[thread]

    def _finish(self, thread, number, loaded):
        self.last[thread] |= self.before[number] | 1 << number
        self.log[thread] += (loaded,)
        event = self.events[number]
        source = None if event.source is None else self._name(event.source)
        self.key[thread] += ((event.kind, event.loc, event.order, event.value, source),)

    def race(self, number):
        """An access that races with the event, or None."""
        event = self.events[number]
        for other in self.events:
            if (other.loc == event.loc and other.loc is not None and other.thread >= 0 and
                    other.thread != event.thread and
                    (other.kind != 'R' or event.kind != 'R') and
                    NA in (other.order, event.order) and
                    not self.before[number] >> other.id & 1):
                return other
        return None

    def fence(self, thread, order):
        if order == NONE:
            self.log[thread] += (None,)
            self.key[thread] += (None,)
            return
        before = self._next(thread)
        if order in _ACQUIRES:
            before |= self.acquired[thread]
        number = self._add(thread, 'F', None, order, None, None, before)
        self._finish(thread, number, None)
        if order in _RELEASES:
            self.fenced[thread] = self.last[thread]

    def _store(self, thread, number, place, chain):
        """Place a store, and determine what an acquire of it orders."""
        event = self.events[number]
        self.order[event.loc].insert(place, number)
        if event.order in _RELEASES:
            chain |= self.before[number] | 1 << number
        elif event.order != NA:
            chain |= self.fenced[thread]
        self.released[number] = chain

    def places(self, thread, loc):
        """Where in modification order a store may go."""
        stores = self.order[loc]
        first = self._floor(loc, self._next(thread)) + 1
        return [place for place in range(first, len(stores) + 1)
                if not self._is_taken(stores[place - 1])]

    def store(self, thread, op, place):
        number = self._add(thread, 'W', op.loc, op.order, op.value, None, self._next(thread))
        self._store(thread, number, place, 0)
        self._finish(thread, number, None)
        return number

    def sources(self, thread, op):
        """Stores that a load may read."""
        found = []
        for store in self.order[op.loc][self._floor(op.loc, self._next(thread)):]:
            value = self.events[store].value
            if op.want is not None and not op.want(value):
                continue
            if op.kind == 'U' and op.value(value) is not None and self._is_taken(store):
                continue
            found.append(store)
        return found

    def load(self, thread, op, store):
        loaded = self.events[store].value
        stored = op.value(loaded) if op.kind == 'U' else None
        order = op.order if op.kind == 'R' or stored is not None else op.fail
        before = self._next(thread)
        if order in _ACQUIRES:
            before |= self.released[store]
        elif order != NA:
            self.acquired[thread] |= self.released[store]
        number = self._add(thread, 'R' if stored is None else 'U', op.loc, order, stored, store,
                           before)
        self.readers[store] = self.readers.get(store, 0) | 1 << number
        if stored is not None:
            self._store(thread, number, self.order[op.loc].index(store) + 1,
                        self.released[store])
        self._finish(thread, number, loaded)
        return number

    def is_sc(self):
        """The axiom of SEQ_CST: psc of RC11 has no cycle."""
        total = len(self.events)
        span = range(total)
        after = [0] * total          # happens-before
        for number in span:
            for earlier in _bits(self.before[number]):
                after[earlier] |= 1 << number
        mo, rb, rf = [0] * total, [0] * total, [0] * total
        for stores in self.order.values():
            later = 0
            for store in reversed(stores):
                mo[store] = later
                rf[store] = self.readers.get(store, 0)
                for reader in _bits(rf[store]):
                    rb[reader] |= later & ~(1 << reader)
                later |= 1 << store
        eco = _closure([mo[n] | rb[n] | rf[n] for n in span])
        sb, sb_other, hb_same = [0] * total, [0] * total, [0] * total
        for n in span:
            for later in _bits(after[n]):
                a, b = self.events[n], self.events[later]
                if a.loc == b.loc and a.loc is not None:
                    hb_same[n] |= 1 << later
                if a.thread == b.thread or a.thread < 0:
                    sb[n] |= 1 << later
                    if a.loc != b.loc or a.loc is None:
                        sb_other[n] |= 1 << later
        around = _join(_join(sb_other, after), sb_other)
        scb = [sb[n] | around[n] | hb_same[n] | mo[n] | rb[n] for n in span]
        accesses = [event.id for event in self.events if event.order == SC and event.kind != 'F']
        fences = [event.id for event in self.events if event.order == SC and event.kind == 'F']
        start, end = [0] * total, [0] * total
        for n in accesses:
            start[n] = end[n] = 1 << n
        for n in fences:
            start[n] = 1 << n | after[n]
            for m in _bits(self.before[n]) + [n]:
                end[m] |= 1 << n
        psc = _join(_join(start, scb), end)
        between = _join(_join(after, eco), after)
        is_fence = sum(1 << n for n in fences)
        for n in fences:
            psc[n] |= (after[n] | between[n]) & is_fence
        closed = _closure(psc)
        return not any(closed[n] >> n & 1 for n in span)

    def text(self, names):
        """The events in the order in which they were added."""
        lines = []
        for event in self.events:
            if event.thread < 0:
                continue
            words = {'R': 'load', 'W': 'store', 'U': 'update', 'F': 'fence'}[event.kind]
            line = '%-10s %-6s %-8s %s' % (names[event.thread], words, event.order, event.loc or '')
            if event.source is not None:
                source = self.events[event.source]
                line += ' = %s' % (source.value,)
                line += ' of %s' % (names[source.thread] if source.thread >= 0 else 'the start')
            if event.value is not None:
                line += ' := %s' % (event.value,)
            lines.append(line)
        return '\n'.join(lines)


def _bits(mask):
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _join(a, b):
    """Composition of two relations."""
    joined = []
    for mask in a:
        row = 0
        for n in _bits(mask):
            row |= b[n]
        joined.append(row)
    return joined


def _closure(relation):
    closed = list(relation)
    for via in range(len(closed)):
        for n, row in enumerate(closed):
            if row >> via & 1:
                closed[n] = row | closed[via]
    return closed


class Program:
    """init: the value of each location at the start. threads: (name, generator function). check: a
    function of what the threads returned, None for one that did not end, and of the last value of
    each location: what is wrong, or None."""

    def __init__(self, init, threads, check):
        self.init = init
        self.names = [name for name, _ in threads]
        self.threads = [body for _, body in threads]
        self.check = check

    def next_op(self, graph, thread):
        """The next access of a thread, or None and what it returned."""
        body = self.threads[thread]()
        try:
            op = next(body)
            for loaded in graph.log[thread]:
                op = body.send(loaded)
        except StopIteration as stop:
            return None, stop.value
        return op, None


def explore(program):
    """The first execution that is wrong, as (what, graph), or None; and how many there were."""
    todo, seen, ended = [Graph(program)], set(), 0
    while todo:
        graph = todo.pop()
        results, loads, found, branches = [], [], None, None
        for thread in range(len(program.threads)):
            op, result = program.next_op(graph, thread)
            results.append(result)
            if op is None:
                continue
            if op.kind in 'FW':
                branches = _step(graph, thread, op)
                break
            loads.append((thread, op))
        else:
            branches = [new for thread, op in loads for new in _loads(graph, thread, op)]
            if not branches:
                ended += 1
                final = {loc: graph.events[stores[-1]].value
                         for loc, stores in graph.order.items()}
                found = program.check(results, final)
                if found is not None and graph.is_sc():
                    return (found, graph), ended
        for new, number in branches:
            racing = None if number is None else new.race(number)
            if racing is not None:
                if new.is_sc():
                    return ('data race on ' + racing.loc, new), ended
                continue
            identity = new.identity()
            if identity not in seen:
                seen.add(identity)
                todo.append(new)
    return None, ended


def _step(graph, thread, op):
    if op.kind == 'F':
        graph.fence(thread, op.order)
        return [(graph, None)]
    branches = []
    for place in graph.places(thread, op.loc):
        new = graph.copy()
        branches.append((new, new.store(thread, op, place)))
    return branches


def _loads(graph, thread, op):
    for store in graph.sources(thread, op):
        new = graph.copy()
        yield new, new.load(thread, op, store)
