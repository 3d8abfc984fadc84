# SPDX-License-Identifier: BSD-3-Clause
"""Writes the litmus tests of litmus.py in C, for tools that others made.

NAME.litmus is a C litmus test for herd7 (herd7 -c11 -model rc11.cat), NAME.c a program for GenMC.
Both have the control flow of the test for every value that a location may have: a thread is
unfolded into a tree, where branches that do the same are one.
"""

import os

from rc11 import ACQ, ACQ_REL, NA, NONE, REL, RLX, SC, explore

ORDERS = {RLX: 'relaxed', ACQ: 'acquire', REL: 'release', ACQ_REL: 'acq_rel', SC: 'seq_cst'}


class Value(int):
    """A loaded value that knows its expression in C."""

    def __new__(cls, value, text):
        new = int.__new__(cls, value)
        new.text = text
        return new

    def __add__(self, other):
        return Value(int(self) + other, '%s + %s' % (self.text, other))

    def __sub__(self, other):
        return Value(int(self) - other, '%s - %s' % (self.text, other))


def _text(value):
    return getattr(value, 'text', str(int(value)))


def _name(loc):
    return loc.replace('.', '_')


def _order(order):
    return 'memory_order_' + ORDERS[order]


def values(program):
    """The values that each location has in some execution, by the explorer."""
    found = {loc: {value} for loc, value in program.init.items()}
    inner = program.next_op

    def next_op(graph, thread):
        for event in graph.events:
            if event.kind != 'F' and event.value is not None:
                found[event.loc].add(int(event.value))
        return inner(graph, thread)
    program.next_op = next_op
    explore(program)
    return {loc: sorted(each) for loc, each in found.items()}


class Thread:
    """The C text of a thread."""

    def __init__(self, body, domain, stop):
        self.body, self.domain, self.stop = body, domain, stop
        self.leaves = []     # what the thread returns, by leaf
        self.locations = {}  # name: whether it is atomic
        self.expected = {}   # objects of compare-and-swap: their value at the start
        self.lines = self.step((), 0)

    def step(self, log, depth):
        """The rest of the thread after it has loaded log."""
        body = self.body()
        try:
            op = next(body)
            for loaded in log:
                op = body.send(loaded)
        except StopIteration as end:
            return self.leaf(end.value)
        if op.kind == 'F':
            fence = [] if op.order == NONE else ['atomic_thread_fence(%s);' % _order(op.order)]
            return fence + self.step(log + (None,), depth)
        name = _name(op.loc)
        self.locations[name] = op.order != NA
        if op.kind == 'W':
            store = '*%s = %s;' % (name, _text(op.value)) if op.order == NA else \
                'atomic_store_explicit(%s, %s, %s);' % (name, _text(op.value), _order(op.order))
            return [store] + self.step(log + (None,), depth)
        register = 'r%d' % depth
        head = self.load(op, name, register) if op.kind == 'R' else \
            self.update(op, name, register, depth)
        return head + self.branch(op, register, log, depth)

    def leaf(self, value):
        if value not in self.leaves:
            self.leaves.append(value)
        return ['ret = %d;' % (self.leaves.index(value) + 1)]

    def load(self, op, name, register):
        if op.order == NA:
            return ['int %s = *%s;' % (register, name)]
        return ['int %s = atomic_load_explicit(%s, %s);' % (register, name, _order(op.order))]

    def update(self, op, name, register, depth):
        stored = {old: op.value(old) for old in self.domain[op.loc]}
        done = {old: new for old, new in stored.items() if new is not None}
        if len(done) < len(stored):
            (old, new), = done.items()
            expected = 'expected_%s_%d' % (name, depth)  # once in each path
            self.expected[expected] = old
            swap = 'atomic_compare_exchange_strong_explicit(%s, %s, %d, %s, %s)' % (
                name, expected, new, _order(op.order), _order(op.fail))
            return ['int done_%s = %s;' % (register, swap), 'int %s = *%s;' % (register, expected)]
        for what, rule in (('add', lambda old, k: old + k), ('exchange', lambda old, k: k),
                           ('or', lambda old, k: old | k)):
            for k in range(-1, 4):
                if all(rule(old, k) == new for old, new in done.items()):
                    call = 'atomic_exchange' if what == 'exchange' else 'atomic_fetch_' + what
                    return ['int %s = %s_explicit(%s, %d, %s);' % (
                        register, call, name, k, _order(op.order))]
        raise ValueError('no update of C does this: %s' % stored)

    def branch(self, op, register, log, depth):
        """One case for each value, those with the same text together."""
        cases = {}
        for value in self.domain[op.loc]:
            if op.want is not None and not op.want(value):
                lines = [self.stop] if self.stop else []
            else:
                lines = self.step(log + (Value(value, register),), depth + 1)
            cases.setdefault(tuple(lines), []).append(value)
        if len(cases) == 1:
            return list(next(iter(cases)))
        text, word = [], 'if'
        for lines, those in sorted(cases.items(), key=lambda case: case[1]):
            if lines:
                test = ' || '.join('%s == %d' % (register, value) for value in those)
                text += ['%s (%s) {' % (word, test)] + ['\t' + line for line in lines] + ['}']
                word = 'else if'
        return text


def bad_outcomes(program, threads, domain):
    """The leaves of all threads, 0 for one that did not end, and the last values, that are wrong."""
    def combine(lists):
        if not lists:
            return [()]
        return [(first,) + rest for first in lists[0] for rest in combine(lists[1:])]

    bad = []
    locations = sorted(domain)
    leaves = combine([range(len(thread.leaves) + 1) for thread in threads])
    for final in combine([domain[loc] for loc in locations]):
        last = dict(zip(locations, final))
        for numbers in leaves:
            results = [thread.leaves[number - 1] if number else None
                       for number, thread in zip(numbers, threads)]
            if program.check(results, last) is not None:
                bad.append((numbers, last))
    # A location whose value makes no difference is not named.
    for loc in locations:
        rest = {}
        for numbers, last in bad:
            key = numbers, tuple(sorted((l, v) for l, v in last.items() if l != loc))
            rest.setdefault(key, set()).add(last.get(loc))
        if all(len(seen) == len(domain[loc]) for seen in rest.values()):
            bad = [(numbers, dict(last)) for numbers, last in rest]
    return bad


def _head(name, what, verdict):
    return '%s: %s\n%s' % (name, ' '.join(what.split()), verdict)


def litmus(name, program, what, verdict):
    domain = values(program)
    threads = [Thread(body, domain, None) for body in program.threads]
    start = {_name(loc): value for loc, value in program.init.items()}
    text = 'C %s\n"%s"\n{\n' % (name, _head(name, what, verdict).replace('\n', '. '))
    for number, thread in enumerate(threads):
        start.update(('%s_%d' % (e, number), v) for e, v in thread.expected.items())
    text += ''.join('\t%s = %d;\n' % pair for pair in start.items()) + '}\n'
    for number, thread in enumerate(threads):
        body = '\n'.join('\t' + line for line in ['int ret = 0;'] + thread.lines)
        arguments = ['%s %s' % ('atomic_int *' if is_atomic else 'int *', loc)
                     for loc, is_atomic in sorted(thread.locations.items())]
        for expected in thread.expected:
            body = body.replace(expected, '%s_%d' % (expected, number))
            arguments.append('int * %s_%d' % (expected, number))
        text += '\nP%d(%s) { /* %s */\n%s\n}\n' % (
            number, ', '.join(arguments), program.names[number], body)
    clauses = []
    for numbers, last in bad_outcomes(program, threads, domain):
        parts = ['%d:ret=%d' % (n, leaf) for n, leaf in enumerate(numbers)]
        parts += ['%s=%d' % (_name(loc), value) for loc, value in last.items()]
        clauses.append('(%s)' % ' /\\ '.join(parts))
    return text + '\n' + ('~exists (%s)\n' % ' \\/ '.join(clauses) if clauses else 'forall (true)\n')


def genmc(name, program, what, verdict):
    domain = values(program)
    threads = [Thread(body, domain, '__VERIFIER_assume(0);') for body in program.threads]
    is_atomic = {}
    for thread in threads:
        is_atomic.update(thread.locations)
    text = '/* %s */\n' % _head(name, what, verdict).replace('\n', '\n * ')
    text += '#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\n'
    text += 'void __VERIFIER_assume(int);\n\n'
    for loc, value in program.init.items():
        text += 'static %s %s_object = %d;\n' % (
            'atomic_int' if is_atomic.get(_name(loc)) else 'int', _name(loc), value)
    text += 'static int results[%d];\n' % len(threads)
    for number, thread in enumerate(threads):
        used = ''.join('\t%s *%s = &%s_object;\n' % ('atomic_int' if atomic else 'int', loc, loc)
                       for loc, atomic in sorted(thread.locations.items()))
        used += ''.join('\tint %s_object = %d;\n\tint *%s = &%s_object;\n' % (e, v, e, e)
                        for e, v in thread.expected.items())
        text += '\nstatic void *\nrun_%d(void *arg) /* %s */\n{\n%s\tint ret = 0;\n\n\t(void)arg;\n' % (
            number, program.names[number], used)
        text += '\n'.join('\t' + line for line in thread.lines)
        text += '\n\tresults[%d] = ret;\n\treturn NULL;\n}\n' % number
    text += '\nint\nmain(void)\n{\n\tpthread_t threads[%d];\n\n' % len(threads)
    for number in range(len(threads)):
        text += '\tpthread_create(&threads[%d], NULL, run_%d, NULL);\n' % (number, number)
    for number in range(len(threads)):
        text += '\tpthread_join(threads[%d], NULL);\n' % number
    for numbers, last in bad_outcomes(program, threads, domain):
        parts = ['results[%d] == %d' % pair for pair in enumerate(numbers)]
        parts += ['%s_object == %d' % (_name(loc), value) for loc, value in last.items()]
        text += '\tassert(!(%s));\n' % ' && '.join(parts)
    return text + '\treturn 0;\n}\n'


def write(folder, tests):
    """tests: (name, function that makes the Program, what it is, whether it is right)."""
    os.makedirs(folder, exist_ok=True)
    for name, make, what, is_right in tests:
        verdict = 'Expected: no data race, and the outcome is never seen' if is_right else \
            'Expected: a data race, or the outcome is seen'
        for suffix, form in (('.litmus', litmus), ('.c', genmc)):
            with open(os.path.join(folder, name + suffix), 'w', encoding='utf-8') as file:
                file.write(form(name, make(), what, verdict))
    print('litmus.py: %d tests written to %s' % (len(tests), folder))
