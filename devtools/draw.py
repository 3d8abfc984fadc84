# SPDX-License-Identifier: BSD-3-Clause
"""Mutants drawn at random from all functions of the product, for mutate.py.

A mutant changes one line: an operator, a condition, a constant, or a statement that is left out. Lines that
only log, trace or silence a warning are not drawn.
"""

import os
import random
import re
import subprocess

import ctext

ROOMS = ('lib', 'drivers', 'dropin', 'ibcm')
# (pattern, replacement)
OPERATORS = [(re.compile(pattern), replacement) for pattern, replacement in (
    (r' == ', ' != '), (r' != ', ' == '), (r' < ', ' <= '), (r' <= ', ' < '), (r' > ', ' >= '),
    (r' >= ', ' > '), (r' && ', ' || '), (r' \|\| ', ' && '), (r'(?<=\w) \+ (?=\w)', ' - '),
    (r'(?<=\w) - (?=\w)', ' + '), (r'\btrue\b', 'false'), (r'\bfalse\b', 'true'), (r' \+= ', ' -= '),
    (r' \|= ', ' &= '), (r'(?<=if \()(?=.*\)( \{)?$)', '!'), (r'(?<=\breturn )0(?=;)', '-1'))]
STATEMENT = re.compile(r'^\t+(\(void\))?[\w>.\[\]*-]+(\(.*\)|( [-+|&^]?= .*)|\+\+|--);$')
NOT_DRAWN = re.compile(
    r'LOG|trace|printf|RMEM_(CALL|FAIL)|RTE_SET_USED|assert|^\t*(const|struct|u?int\w*|bool|size_t|char|void) ')
# Tests of one process and its secondary processes.
PLAIN = ('(?!cm|devtools|doc|dropin|engine|example|fake|harness|hooks|ibcm|kernel|lease|man|plain|recheck|trace|'
         'verbs|wire).*')
# (pattern of paths, pattern of the tests that are about those files and run before all others)
NEAREST = (
    ('drivers/soft/wire/codec/', 'wire_(golden|hdr|icrc|ring)'),
    ('drivers/soft/wire/rwire_xrc', 'wire_sim|dropin_xrc(_processes|_open|_fork)?'),
    ('drivers/soft/wire/port/rwire_(map|copy)', 'wire_(map|grant_file|direct|host)'),
    ('drivers/soft/wire/port/.*shm', 'wire_(shm|host|conformance_shm|shm_clock)'),
    ('drivers/soft/wire/port/.*(eth|neigh)', 'wire_(eth|neigh|conformance_eth6?)'),
    ('drivers/soft/wire/port/rwire_port_fault', 'chaos_port|wire_conformance_faults'),
    ('drivers/soft/wire/port/.*links', 'wire_conformance_(ports_shm|ports_udp|link)'),
    ('drivers/soft/wire/rwire_(gid|control)', 'dropin_(control|gids)|wire_netif'),
    ('drivers/soft/wire/', 'wire_(sim|udp|late|progress|rate_limit_udp)'),
    ('drivers/soft/(chaos/|rsoft_chaos)',
     '(dropin_cm_)?chaos(_(call|cq|event|port|recv|rule))?'),
    ('drivers/soft/mem/rsoft_(odp|advise|guard|gate)',
     'odp(_(uffd|guard|advise|implicit|mix))?|guard_copy|wire_map'),
    ('drivers/soft/mem/rsoft_mlock', 'locked|pin.*'),
    ('drivers/soft/mem/rsoft_history', 'sanitize.*|mem_fault|mistakes'),
    ('drivers/soft/mem/',
     'mr.*|rereg|dm|key.*|requested_key|fastreg|mw.*|umr.*|iov|sanitize|grace|wire_(map|grant_file)'),
    ('drivers/soft/(rsoft_mcast|queue/rsoft_(group|ud|gid|addr))', 'mcast|ud'),
    ('drivers/soft/queue/', 'cq.*|srq|send.*|rdma|queue|retry|atomic|flush|fatal|inline_.*|chaos_rule'),
    ('drivers/soft/rsoft_(audit|args|attr|dev)', 'audit|args.*|dev|profile|driver'),
    ('drivers/soft/rsoft_(qp|post|engine)', 'qp.*|engine(_send|_rdma)?|queue|dropin_gids'),
    ('drivers/verbs/rverbs_mlx5', 'fake_verbs_mlx5.*'),
    ('drivers/verbs/', 'fake_verbs_(?!mw_random).*|fake_conformance'),
    ('dropin/(preload/|ribv_view)', 'dropin_(preload|paths|files|loader|dlopen|next_before|process)'),
    ('dropin/cm/', 'dropin_cm(_(refused|efault|gids|peer|poll|devices))?'),
    ('dropin/verbs/ribv_(import|handle)', 'dropin_(import.*|handles|dm|memory)'),
    ('dropin/verbs/ribv_(watch|poison|sanitize|finding|stack)', 'dropin_(sanitize|report|findings|crossings_sanitize)'),
    ('dropin/', 'dropin_(verbs|requests|refusals|memory|events|cq_ex|ud|dm|xrc|contexts|handles)'),
    ('ibcm/gsi/', 'gsi|ibcm_link|cm_mad'),
    ('lib/rmem/rmem_(mp|devs)', 'mp|secondary'),
    ('lib/rmem/rmem_(mr|chunk|pages|uffd)', 'mr.*|odp.*|rereg.*|pages|uffd|pin.*|mem_fault|iov|dm'),
    ('lib/rmem/rmem_(qp|ah|srq)', 'qp.*|srq|ud|counter|driver|async_channel'),
    ('lib/rmem/', 'dev|driver|mw.*|object|obj_name|counter|async.*|comp_channel|cq.*|dump|debug|eq'),
    ('lib/rmem_lease/',
     'lease_(fast_reg|mw|seal|desc|key_fast_reg|short|caught|driver|random|revoke_mw)|dump'))
# (directory, pattern of the tests that kill most, and of further ones)
KILLERS = (
    ('drivers/soft/wire/codec/', 'wire_(golden|hdr|icrc|ring)', '(dropin_)?(ports|wire|udp|xrc).*'),
    ('drivers/soft/wire/', 'wire_(sim|conformance_shm)', '(dropin_)?(cm|conformance|host|ports|wire|sim|udp|xrc).*'),
    ('drivers/soft/chaos/', 'chaos_.*', '(dropin_|engine_|wire_)?(args|chaos|conformance|control).*'),
    ('drivers/soft/', 'conformance(_sanitize)?|engine_conformance',
     PLAIN + '|engine(?!_lease).*|dropin_xrc.*|wire_(conformance(_shm)?|sim)'),
    ('drivers/verbs/', 'fake_verbs_(?!mw_random).*', 'fake_.*|verbs.*'),
    ('dropin/cm/', 'dropin_(cm|cm_poll|cm_refused|errnos_cm)', 'dropin_.*|cm_.*'),
    ('dropin/', 'dropin_(verbs|errnos|groups|requests|refusals|sanitize)', 'dropin_.*'),
    ('ibcm/', 'ibcm(_mad|_peer|_link)?', '(ibcm|cm|dropin_cm).*'),
    ('lib/rmem_cm/', 'cm_.*', '(dropin_|fake_)?cm.*'),
    ('lib/rmem_pool/', '(pool|mbuf|tracked|mempool).*', 'dump|doc_pool|left.*|mp|object|sanitize_pool|secondary|tel_cmd'),
    ('lib/rmem_lease/', 'lease_(fast_reg|mw|umr|bad_.*)', '.*lease.*|audit|dump|tel_cmd'),
    ('lib/rmem_cache/', 'cache', '.*(cache|uffd).*'),
    ('lib/', 'conformance|mr|qp|dev|object', PLAIN))


def killers(path, all_tests):
    """The lists of tests that are run one after the other, each test in one."""
    patterns = next(patterns for room, *patterns in KILLERS if path.startswith(room))
    patterns[:0] = [tests for files, tests in NEAREST if re.match(files, path)][:1]
    lists, left = [], list(all_tests)
    for pattern in patterns:
        lists.append([test for test in left if re.fullmatch(pattern, test)])
        left = [test for test in left if test not in lists[-1]]
    return lists


def _changes(line):
    """Yield each changed line."""
    if NOT_DRAWN.search(line):
        return
    for pattern, replacement in OPERATORS:
        for found in pattern.finditer(line):
            if replacement == '!':
                begin, end = found.start(), line.rindex(')')
                yield line[:begin] + '!(' + line[begin:end] + ')' + line[end:]
            else:
                yield line[:found.start()] + replacement + line[found.end():]
    if STATEMENT.match(line):
        yield re.match(r'\t+', line).group() + ';'


def _candidates(path, text):
    lines, code = text.split('\n'), ctext.strip(text).split('\n')
    for name, start, length in ctext.functions(text):
        for number in range(start, min(start + length, len(lines))):
            if code[number] == lines[number]:
                for changed in _changes(lines[number]):
                    yield path, name, number, changed


def _mutant(root, path, name, number, changed):
    """The change, with as many surrounding lines as make its text unique in the file."""
    with open(os.path.join(root, path), encoding='utf-8') as file:
        text = file.read()
    lines, around = text.split('\n'), 0
    while True:
        first, last = max(number - around, 0), number + around + 1
        before = '\n'.join(lines[first:last])
        if text.count(before) == 1:
            break
        around += 1
    after = '\n'.join([*lines[first:number], changed, *lines[number + 1:last]])
    return path, before, after, '%s(): %s => %s' % (name, lines[number].strip(), changed.strip())


def draw(root, number, seed):
    """Mutants as read_mutants() of mutate.py returns them, without their killers."""
    listing = subprocess.run(['git', '-C', root, 'ls-files', *(room + '/*.[ch]' for room in ROOMS)],
                             stdout=subprocess.PIPE, check=True, text=True).stdout
    found = []
    for path in listing.split():
        with open(os.path.join(root, path), encoding='utf-8') as file:
            found += _candidates(path, file.read())
    drawn = random.Random(seed).sample(found, min(number, len(found)))
    return [('drawn-%d-%d' % (seed, place), *_mutant(root, *one), [], None)
            for place, one in enumerate(drawn, 1)]
