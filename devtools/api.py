# SPDX-License-Identifier: BSD-3-Clause
"""Rules of the public API for check-style.py; doc/api.md states them."""

import re

import ctext

# A verb, and those that end what it began.
PAIRS = {
    'accept': ('disconnect',), 'add': ('del',), 'alloc': ('dealloc', 'free'), 'begin': ('end',),
    'connect': ('disconnect', 'reset'), 'create': ('destroy', 'close'), 'get_sges': ('put_sges',),
    'get_sges_bulk': ('put_sges_bulk',), 'grant': ('revoke',), 'hold': ('unhold',),
    'pack': ('unpack',), 'prepare': ('revoke',), 'reg': ('dereg',), 'register': ('unregister',),
    'seal': ('unseal',),
}
# Ended by a call of another name, or never.
ENDS = {
    'rmem_audit_add': None,
    'rmem_cm_accept': 'rmem_cm_disconnect',
    'rmem_driver_register': None,
    'rmem_fast_reg_mr_alloc': 'rmem_mr_dereg',
    'rmem_mkey_alloc': 'rmem_mr_dereg',
    'rmem_null_mr_alloc': 'rmem_mr_dereg',
    'rmem_lease_prepare': 'rmem_lease_revoke',
    'rmem_tel_names_add': 'rmem_tel_names_end',
    'rmem_mp_end_add': None,
    'rmem_telemetry_add': None,
}
# Words for which verbs or DPDK have another.
INSTEAD = {
    'age': 'trim', 'find': 'lookup', 'fini': 'destroy', 'init': 'create', 'make': 'create',
    'new': 'create', 'open': 'create', 'remove': 'del', 'take': 'get', 'tell': 'query',
    'unlisten': 'destroy',
}
QUERY = re.compile(r'rmem_\w+_(?:query|info_get|stats_get|desc_get|lookup|dump|check)')
# Returned objects and positions in an array, which are not results of a query.
FIXED = {
    'rmem_dev_drv': 'of the library', 'rmem_lease': 'of the library',
    'rmem_mr_drv': 'of the library', 'rmem_qp_drv': 'of the library',
    'rmem_obj': 'the head of objects',
    'rmem_name_text': 'memory of a text in log lines',
    'rmem_mr_attr': 'grows by its rmem_mr_ext',
    'rmem_qp_conf': 'grows by its rmem_qp_ext', 'rmem_srq_conf': 'grows by its rmem_srq_ext',
    'rmem_pool_keys': 'returned by value, loaded as one word',
    'rmem_send_wr': '64 bytes, one cache line', 'rmem_sge': 'as struct ibv_sge',
}
# What one file does for all of the others.
PLACES = (
    (r'#include <rte_kvargs\.h>', ('lib/rmem/rmem_args.c',), 'rmem_args_parse()'),
    (r'\brte_log\(', ('lib/rmem/rmem_log.c', 'lib/rmem/rmem_log.h'), 'RMEM_LOG_LINE()'),
    (r'\brte_socket_id_by_idx\(', ('lib/rmem/rmem_chunk.c',), 'rmem_socket_check()'),
    (r'\brte_telemetry_register_cmd\(', ('lib/rmem/rmem_telemetry.c', 'lib/rmem/rmem_telemetry_obj.c'),
     'rmem_telemetry_add()'),
)


def _calls(tree):
    for path in tree.headers():
        for name, kind, _, _ in ctext.declarations(tree.text(path)):
            if kind != 'object':
                yield path, name


def calls_come_in_pairs(tree):
    calls = list(_calls(tree))
    names = {name for _, name in calls}
    for path, name in calls:
        for verb, instead in INSTEAD.items():
            if re.search(r'_%s(?:_|$)' % verb, name):
                yield path, 1, '%s: write %s' % (name, instead)
        if name in ENDS:
            if ENDS[name] is not None and ENDS[name] not in names:
                yield path, 1, '%s has no %s' % (name, ENDS[name])
            continue
        for verb, ends in PAIRS.items():
            found = re.fullmatch(r'(\w+_)%s' % verb, name)
            if found and not any(found.group(1) + end in names for end in ends):
                yield path, 1, '%s has no %s' % (
                    name, ' or '.join(found.group(1) + end for end in ends))


def queries_take_const(tree):
    for path in tree.headers():
        text = ctext.strip(tree.text(path))
        for found in re.finditer(r'\b(rmem_\w+)\(([^()]*)\)[;\n]', text):
            if not QUERY.fullmatch(found.group(1)):
                continue
            first = found.group(2).split(',')[0]
            if re.match(r'\s*struct rmem_\w+ \*', first):
                yield path, text.count('\n', 0, found.start()) + 1, \
                    '%s: %s is not const' % (found.group(1), first.strip())


def structs_can_grow(tree):
    """A struct begins with the head of objects, has reserved space, or is FIXED for a reason."""
    struct = re.compile(r'^struct (rmem_\w+) \{\n(.*?)^\}', re.M | re.S)
    seen = set()
    for path in tree.headers():
        text = ctext.strip(tree.text(path))
        for found in struct.finditer(text):
            name, body = found.groups()
            seen.add(name)
            is_object = re.match(r'\s*struct rmem_obj obj;', body)
            if not (is_object or re.search(r'\breserved\b', body) or name in FIXED):
                yield path, text.count('\n', 0, found.start()) + 1, \
                    'struct %s has no reserved space' % name
    for name in sorted(set(FIXED) - seen):
        yield 'devtools/api.py', 1, 'FIXED names struct %s, which does not exist' % name


def one_file_does_it_for_all(tree):
    for path in tree.c_files('lib', 'drivers'):
        text = tree.text(path)
        code = ctext.strip(text)
        for pattern, places, instead in PLACES:
            for found in re.finditer(pattern, text if '#include' in pattern else code):
                if path not in places:
                    yield path, text.count('\n', 0, found.start()) + 1, \
                        '%s: use %s' % (found.group(), instead)


RULES = (calls_come_in_pairs, one_file_does_it_for_all, queries_take_const, structs_can_grow)
