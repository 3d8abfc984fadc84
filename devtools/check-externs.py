#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""No function is visible to others without need: four rules on the files of each folder.

unused   An extern function is named by no other file: it becomes static.
strayed  It has one user, a .c of its folder after which it is named and its own file is not: it
         moves there.
split    A .c without a header of its own serves one other .c of its folder, and both fit in one
         file: they are one concept, and become one file.
tiny     A short header has one user: the declarations move to a header of that user.

Public names, and names that a macro or another folder uses, are an interface and no finding. Tests
are users, except of a split file.
"""

import fnmatch
import os
import re
import sys

sys.dont_write_bytecode = True

import calls  # noqa: E402 (in this folder)
import rooms  # noqa: E402

MAX_LINES = 800
TINY = 45

# What stays: rule, file, function or user, all as patterns; reason.
JUSTIFIED = (
    ('split', 'drivers/*', '*_dev.c', 'functions of the table of operations'),
    ('split', 'app/*', '*/main.c', 'main() calls each part of the program once'),
    ('split', '*_audit.c', '*', 'an audit reads all structures of its library'),
    ('split', 'drivers/verbs/rverbs_probe_*.c', '*', 'a file for each capability that is probed'),
    ('split', 'lib/rmem/rmem_ops_none.c', '*', 'a function for each operation'),
    ('split', 'lib/rmem_pool/rmem_pool_avx2.c', '*', 'compiled with options of its own'),
    ('split', 'lib/rmem_pool/rmem_pool_puts.c', '*',
     'pools without checked puts execute nothing of it'),
    ('tiny', 'drivers/soft/queue/rsoft_*_burst.h', '*',
     'the fast path, whose inlining does not depend on the code of other requests'),
    ('split', 'dropin/verbs/*', 'dropin/verbs/ribv_ops.c', 'operations of a context'),
    ('split', 'dropin/verbs/ribv_ops.c', '*', 'a wrapper of each operation'),
    ('unused', 'dropin/preload/ribv_dlopen.c', 'ribv_dlopen_to', 'called by assembly'),
    ('unused', 'dropin/*', '*ibv_[gq]*', 'functions of libibverbs, which programs call'),
    ('unused', 'env/*', 'rte_*', 'functions of DPDK, which its headers declare'),
)


def read(path):
    with open(os.path.join(calls.ROOT, path), encoding='utf-8') as file:
        return file.read()


class Tree:
    """Names that files of the product and of tests define and use."""

    def __init__(self):
        self.texts, self.users, self.includers = {}, {}, {}
        self.public = set()
        for top in rooms.TOPS + ('test', 'examples'):
            for path, code in calls.sources(top + '/*'):
                self._add(os.path.join(top, path), code)
            for folder, _, files in os.walk(os.path.join(calls.ROOT, top)):
                for name in files:
                    if name.endswith('.map'):
                        self.public |= set(re.findall(r'\w+', read(os.path.join(folder, name))))
                    elif name.endswith('.S'):
                        path = os.path.join(folder, name)
                        self._use(path, set(re.findall(r'\w+', read(path))))

    def _add(self, path, code):
        self.texts[path] = code
        macros = calls.macros(code)
        for start in calls.pasted(code):
            self._use(path, {start + word for word in re.findall(r'\w+', code)})
        if path.endswith('.h'):
            self._use('macro ' + path, macros)
        self._use(path, calls.used(path, calls.without_directives(code)) | macros)
        for header in re.findall(r'^[ \t]*#[ \t]*include "(?:[^"/]*/)*([^"/]+)"', read(path), re.M):
            self.includers.setdefault(header, set()).add(path)

    def _use(self, path, names):
        for name in names:
            self.users.setdefault(name, set()).add(path)

    def externs(self):
        """File, function, and the other files that name it."""
        for path, code in self.texts.items():
            if path.endswith('.c') and not is_test(path):
                for name in calls.functions(path, calls.without_directives(code)):
                    if name not in self.public and name != 'main':
                        yield path, name, self.users.get(name, set()) - {path}


def is_test(path):
    return path.split('/')[0] in ('test', 'examples')


def lines(tree, path):
    return tree.texts[path].count('\n')


def stem_of(tree, folder, name):
    """The file of a folder after which a function is named."""
    stems = {os.path.basename(path)[:-2] for path in tree.texts if os.path.dirname(path) == folder}
    return max((stem for stem in stems if (name + '_').startswith(stem + '_')), key=len, default='')


def findings(tree):
    """Rule, file, function or user, message."""
    served = {}
    for path, name, users in tree.externs():
        if not users:
            yield 'unused', path, name, 'no other file names %s(): make it static' % name
        users = {user for user in users if not is_test(user)}
        served.setdefault(path, set()).update(users)
        user = min(users, default='')
        folder, stem = os.path.dirname(path), os.path.basename(user)[:-2]
        if (len(users) == 1 and user.endswith('.c') and os.path.dirname(user) == folder
                and stem_of(tree, folder, name) == stem
                and not os.path.basename(path).startswith(stem + '_')):
            yield 'strayed', path, name, '%s() is named after its only user, %s: move it' % (name, user)
    for path, users in served.items():
        user = min(users, default='')
        if (len(users) == 1 and user.endswith('.c') and os.path.dirname(user) == os.path.dirname(path)
                and path[:-2] + '.h' not in tree.texts and path[:-2] + '_priv.h' not in tree.texts
                and not tree.public & set(calls.functions(path, calls.without_directives(tree.texts[path])))
                and lines(tree, path) + lines(tree, user) <= MAX_LINES):
            yield 'split', path, user, 'serves only %s, and both have %d lines: merge them' % (
                user, lines(tree, path) + lines(tree, user))
    for path in tree.texts:
        if not path.endswith('.h') or is_test(path) or lines(tree, path) >= TINY:
            continue
        users = tree.includers.get(os.path.basename(path), set()) - {path[:-2] + '.c'}
        user = min(users, default='')
        if len(users) == 1 and user.endswith('.c') and os.path.dirname(user) == os.path.dirname(path):
            yield 'tiny', path, min(users), 'has %d lines and one user, %s' % (
                lines(tree, path), min(users))


def main():
    tree, breaches, unused = Tree(), 0, set(JUSTIFIED)
    for rule, path, other, message in findings(tree):
        excuses = {entry for entry in JUSTIFIED if entry[0] == rule
                   and fnmatch.fnmatch(path, entry[1]) and fnmatch.fnmatch(other, entry[2])}
        unused -= excuses
        if not excuses:
            breaches += 1
            print('%s: %s: %s' % (path, rule, message))
    for entry in sorted(unused):
        breaches += 1
        print('check-externs.py: JUSTIFIED names nothing: %s' % ' '.join(entry[:3]))
    print('check-externs.py: %d extern functions' % len(list(tree.externs())))
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main())
