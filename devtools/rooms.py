# SPDX-License-Identifier: BSD-3-Clause
"""Which folder may include headers of which others, and which header describes it; rules of
check-style.py.

A folder names only folders of lines before its own, so that includes lead one way.
"""

import os
import re

TOPS = ('app', 'drivers', 'dropin', 'env', 'ibcm', 'lib')

# Folder, and those it includes headers of.
FOLDERS = (
    ('ibcm', ''),
    ('lib/rmem', ''),
    ('ibcm/gsi', 'lib/rmem ibcm'),
    ('lib/rmem_cache', 'lib/rmem'),
    ('lib/rmem_cm', 'lib/rmem ibcm ibcm/gsi'),
    ('lib/rmem_lease', 'lib/rmem'),
    ('lib/rmem_pool', 'lib/rmem'),
    ('drivers', 'lib/rmem'),
    ('drivers/verbs', 'lib/rmem'),
    ('drivers/soft/base', 'lib/rmem'),
    ('drivers/soft/chaos', 'drivers/soft/base'),
    ('drivers/soft/mem', 'lib/rmem drivers/soft/base'),
    ('drivers/soft/wire/codec', ''),
    ('drivers/soft/queue', 'drivers/soft/base drivers/soft/chaos drivers/soft/mem '
     'drivers/soft/wire/codec'),
    ('drivers/soft/wire/port', 'lib/rmem drivers/soft/base drivers/soft/chaos drivers/soft/mem '
     'drivers/soft/wire/codec'),
    ('drivers/soft/wire', 'drivers/soft/base drivers/soft/chaos drivers/soft/mem drivers/soft/queue '
     'drivers/soft/wire/codec drivers/soft/wire/port'),
    ('drivers/soft', 'drivers/soft/base drivers/soft/chaos drivers/soft/mem drivers/soft/queue '
     'drivers/soft/wire drivers/soft/wire/codec'),
    ('env', 'lib/rmem drivers/soft drivers/soft/base drivers/soft/wire drivers/soft/wire/port'),
    ('dropin', 'env'),
    ('dropin/verbs', 'lib/rmem env dropin'),
    ('dropin/cm', 'lib/rmem ibcm ibcm/gsi dropin dropin/verbs'),
    ('dropin/preload', 'dropin'),
    ('app/kv', 'lib/rmem lib/rmem_cm lib/rmem_lease lib/rmem_pool'),
    ('app/testrmem', 'lib/rmem lib/rmem_cm lib/rmem_lease lib/rmem_pool'),
)

# The header whose first comment states the content of a folder, its callers, and their limits.
HEADS = {
    'ibcm': 'ibcm.h',
    'ibcm/gsi': 'rmem_gsi.h',
    'lib/rmem': 'rmem_priv.h',
    'lib/rmem_cache': 'rmem_cache_priv.h',
    'lib/rmem_cm': 'rmem_cm.h',
    'lib/rmem_lease': 'rmem_lease_priv.h',
    'lib/rmem_pool': 'rmem_pool_priv.h',
    'drivers': 'rmem_drivers.h',
    'drivers/verbs': 'rverbs.h',
    'drivers/soft/base': 'rsoft.h',
    'drivers/soft/chaos': 'rsoft_chaos.h',
    'drivers/soft/mem': 'rsoft_access.h',
    'drivers/soft/wire/codec': 'rwire_hdr.h',
    'drivers/soft/queue': 'rsoft_batch.h',
    'drivers/soft/wire/port': 'rwire_port.h',
    'drivers/soft/wire': 'rwire.h',
    'drivers/soft': 'rsoft_post.h',
    'env': 'rmem_env.h',
    'dropin': 'ribv_view.h',
    'dropin/verbs': 'ribv.h',
    'dropin/cm': 'rcm.h',
    'dropin/preload': 'ribv_load.h',
    'app/kv': 'kv.h',
    'app/testrmem': 'testrmem.h',
}
LABELS = ('Inside', 'Callers', 'Not known here')

# Includes that lead the other way: file, header, reason.
JUSTIFIED = (
    ('dropin/ribv_core.c', 'dropin/cm/rcm.h', 'the core is the union of the folders below dropin'),
    ('dropin/ribv_core.c', 'dropin/verbs/ribv.h', 'likewise'),
    ('dropin/ribv_view.c', 'dropin/verbs/ribv.h', 'likewise'),
    ('dropin/verbs/ribv_sum.c', 'drivers/soft/mem/rsoft_guard.h', 'reads that may fail, without a system call'),
    ('lib/rmem/rmem_driver.c', 'drivers/rmem_drivers.h', 'the table of the drivers built in'),
)

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]', re.M)


def includes(tree):
    """Yield (file, line, header): a header that is a file of the tree, by its path."""
    paths = [path for path in tree.paths
             if path.split('/')[0] in TOPS and path.endswith(('.c', '.h', '.S'))]
    known, by_name = set(paths), {}
    for path in paths:
        by_name.setdefault(os.path.basename(path), []).append(path)
    for path in paths:
        text = tree.text(path)
        for found in _INCLUDE.finditer(text):
            name = os.path.normpath(os.path.join(os.path.dirname(path), found.group(1)))
            if name not in known:  # of an include directory; the names of headers are unique
                end = '/' + found.group(1)
                names = [one for one in by_name.get(os.path.basename(end), ()) if one.endswith(end)]
                if len(names) != 1:
                    continue
                name = names[0]
            yield path, text.count('\n', 0, found.start(1)) + 1, name


def folder_includes_those_below(tree):
    """A folder includes headers of those that its line in devtools/rooms.py names."""
    known, allowed = set(), {}
    for folder, below in FOLDERS:
        for other in set(below.split()) - known:
            yield 'devtools/rooms.py', 1, '%s names %s, which is not on a line before' % (
                folder, other)
        known.add(folder)
        allowed[folder] = set(below.split())
    unused = {(folder, other) for folder in allowed for other in allowed[folder]}
    excuses = {entry[:2] for entry in JUSTIFIED}
    for path, line, header in includes(tree):
        folder, other = os.path.dirname(path), os.path.dirname(header)
        unused.discard((folder, other))
        if folder == other or other in allowed.get(folder, ()):
            continue
        if (path, header) in excuses:
            excuses.discard((path, header))
            continue
        yield path, line, 'includes %s: devtools/rooms.py does not permit it' % header
    for folder, other in sorted(unused):
        yield 'devtools/rooms.py', 1, '%s includes no header of %s' % (folder, other)
    for path, header in sorted(excuses):
        yield 'devtools/rooms.py', 1, 'JUSTIFIED names an include that is gone: %s, %s' % (path, header)


def folder_has_head(tree):
    """Each folder with C files is in FOLDERS, and its header in HEADS describes it."""
    folders = {folder for folder, _ in FOLDERS}
    for path in tree.paths:
        folder = os.path.dirname(path)
        if path.split('/')[0] in TOPS and path.endswith(('.c', '.h')) and folder not in folders:
            yield path, 1, 'is in %s, which FOLDERS of devtools/rooms.py lacks' % folder
    for folder in sorted(folders | set(HEADS)):
        path = '%s/%s' % (folder, HEADS.get(folder, ''))
        if folder not in folders or folder not in HEADS or path not in tree.paths:
            yield 'devtools/rooms.py', 1, 'FOLDERS and HEADS have no header for %s' % folder
            continue
        head = re.search(r'^/\*(?! SPDX)(.*?)\*/', tree.text(path), re.S | re.M)
        for label in LABELS:
            if head is None or not re.search(r'^ \* %s: \w' % label, head.group(1), re.M):
                yield path, 1, 'does not state "%s:" of %s in its first comment' % (label, folder)
