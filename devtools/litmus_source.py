# SPDX-License-Identifier: BSD-3-Clause
"""The accesses of the litmus tests of litmus.py: where they are in the source, and their order."""

import os
import re
import sys

import ctext
from rc11 import ACQ, ACQ_REL, NONE, REL, RLX, SC

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

ORDERS = {'SEQ_CST': SC, 'ACQ_REL': ACQ_REL, 'ACQUIRE': ACQ, 'RELEASE': REL, 'RELAXED': RLX}

# File, function, and its accesses in the order of the function: a name, and the statement, where @
# is the order that is taken, and ~ another one. A statement without @ is a full fence, or a call.
# Fences, and calls that wait, may be missing: then the tests have none.
SOURCE = [
    ('drivers/soft/mem/rsoft_grace.h', 'rsoft_grace_announce', [
        ('enter.token', '__atomic_load_n(&grace->token, @)'),
        ('enter.inside', '__atomic_load_n(&grace->token, ~), @)'),
    ]),
    ('drivers/soft/mem/rsoft_grace.h', 'rsoft_grace_enter_lcore', [
        ('enter.announce', 'rsoft_grace_announce(lcore)'),
        ('enter.fence', 'rte_smp_mb()'),
    ]),
    ('drivers/soft/mem/rsoft_grace.h', 'rsoft_grace_enter_lock', [
        ('enter_lock.announce', 'rsoft_grace_announce(lcore)'),
        ('enter_lock.lock', 'rte_ticketlock_lock(lock)'),
        ('enter_lock.call', 'RSOFT_FENCE_AFTER_ATOMIC()'),
    ]),
    ('drivers/soft/mem/rsoft_grace.h', 'rsoft_grace_leave', [
        ('leave.inside', '__atomic_store_n(&rsoft_domain->grace.lcore[lcore].token, 0, @)'),
    ]),
    ('drivers/soft/mem/rsoft_grace.h', 'rsoft_grace_quiescent', [
        ('quiescent.token', '__atomic_load_n(&grace->token, @)'),
        ('quiescent.inside', '__atomic_store_n(&grace->lcore[lcore].token, token, @)'),
    ]),
    ('drivers/soft/mem/rsoft_grace.h', None, [
        ('start.fence', '#else #define RSOFT_FENCE_AFTER_ATOMIC() __atomic_thread_fence(@)'),
    ]),
    ('drivers/soft/mem/rsoft_grace.h', 'rsoft_grace_start', [
        ('start.call', 'RSOFT_FENCE_AFTER_ATOMIC()'),
        ('start.nb_lcores', '__atomic_load_n(&grace->nb_lcores, @) == 1'),
        ('start.token', '__atomic_add_fetch(&grace->token, 1, @)'),
    ]),
    ('drivers/soft/mem/rsoft_grace.c', 'rsoft_grace_register', [
        ('register.lcores', '__atomic_fetch_or(&grace->lcores[lcore / 64], bit, @)'),
        ('register.nb_lcores', '__atomic_fetch_add(&grace->nb_lcores, 1, @)'),
    ]),
    ('drivers/soft/mem/rsoft_grace.c', 'rsoft_grace_check', [
        ('check.lcores', '__atomic_load_n(&grace->lcores[i], @)'),
        ('check.inside', '__atomic_load_n(&grace->lcore[lcore].token, @)'),
    ]),
    ('drivers/soft/mem/rsoft_grace.c', 'rsoft_grace_wait', [
        ('wait.fence', '__atomic_thread_fence(@)'),
        ('wait.token', '__atomic_add_fetch(&rsoft_domain->grace.token, 1, @)'),
    ]),
    ('drivers/soft/mem/rsoft_access.h', 'rsoft_access_find', [
        ('access.word', 'word = __atomic_load_n(&key->word, @); if (unlikely('),
    ]),
    ('drivers/soft/mem/rsoft_mr.c', 'rsoft_mr_dereg', [
        ('dereg.word', '__atomic_compare_exchange_n(&mr->key->word, &word, '
         'rsoft_key_word(rsoft_word_rkey(word), 0), false, @, ~)'),
    ]),
    ('drivers/soft/mem/rsoft_key.h', 'rsoft_key_take', [
        ('take.load', '__atomic_load_n(&key->word, @)'),
        ('take.word', '__atomic_compare_exchange_n(&key->word, &word, '
         'rsoft_key_word(*rkey, RSOFT_BUSY), false, @, ~)'),
    ]),
    ('drivers/soft/mem/rsoft_key.h', 'rsoft_key_end', [
        ('invalidate.word', '__atomic_compare_exchange_n(&key->word, &word, '
         'rsoft_key_word(rkey, RSOFT_BUSY), false, @, ~)'),
    ]),
    ('drivers/soft/mem/rsoft_key.h', 'rsoft_key_set_free', [
        ('release.word', '__atomic_store_n(&key->word, rsoft_key_word(rkey, 0), @)'),
    ]),
    ('drivers/soft/mem/rsoft_key.h', 'rsoft_key_publish', [
        ('reg_mr.word', '__atomic_store_n(&key->word, '
         'rsoft_key_word(rmem_rkey_of_tag(rkey, tag), rights), @)'),
    ]),
    ('drivers/soft/queue/rsoft_cq.c', 'rsoft_cq_attach', [
        ('attach.producers', '__atomic_fetch_add(&cq->nb_producers, 1, @)'),
        ('attach.wait', 'rsoft_grace_wait()'),
    ]),
    ('drivers/soft/queue/rsoft_cq.c', 'rsoft_cq_detach', [
        ('detach.producers', '__atomic_fetch_sub(&cq->nb_producers, 1, @)'),
    ]),
    ('drivers/soft/queue/rsoft_cq.h', 'rsoft_cq_reserve', [
        ('reserve.producers', '__atomic_load_n(&cq->nb_producers, @)'),
        ('reserve.load', '__atomic_load_n(&cq->prod, @)'),
        ('reserve.store', '__atomic_store_n(&cq->prod, at + n, @)'),
    ]),
    ('drivers/soft/queue/rsoft_cq.h', 'rsoft_cq_reserve_shared', [
        ('reserve.add', '__atomic_fetch_add(&cq->prod, n, @)'),
    ]),
    ('drivers/soft/queue/rsoft_cq.h', 'rsoft_cq_has_space', [
        ('space.cached', '__atomic_load_n(&cq->cons_cached, @)'),
        ('space.cons', '__atomic_load_n(&cq->cons, @)'),
        ('space.store', '__atomic_store_n(&cq->cons_cached, cons, @)'),
    ]),
    ('drivers/soft/queue/rsoft_cq.h', 'rsoft_cq_store', [
        ('write.number', '__atomic_store_n(&e->number, at + 1, @)'),
    ]),
    ('drivers/soft/rsoft_post.h', 'rsoft_post_poll', [
        ('poll.number', '__atomic_load_n(&e->number, @)'),
        ('poll.cons', '__atomic_store_n(&cq->cons, cons, @)'),
    ]),
    ('drivers/soft/rsoft_qp.c', 'qp_leave_peer', [
        ('quiesce.peer', '__atomic_store_n(&peer->peer, NULL, @)'),
    ]),
    ('drivers/soft/rsoft_qp.c', 'qp_quiesce', [
        ('quiesce.leave', 'qp_leave_peer(qp)'),
        ('quiesce.wait', 'rsoft_grace_wait()'),
    ]),
    ('drivers/soft/queue/rsoft_resp.h', 'rsoft_resp_find_peer', [
        ('peer.load', '__atomic_load_n(&qp->peer, @)'),
    ]),
    ('drivers/soft/queue/rsoft_rq.h', 'rsoft_rq_post', [
        ('post.prod', '__atomic_exchange_n(&rq->prod, prod, @)'),
    ]),
    ('drivers/soft/rsoft_post.c', 'rsoft_post_recv', [
        ('post.post', 'rsoft_rq_post(qp, wr, nb_wr)'),
        ('post.state', '__atomic_load_n(&qp->state, @) == RMEM_QPS_ERR'),
        ('post.flush', 'rsoft_rq_flush(qp)'),
    ]),
    ('drivers/soft/base/rsoft.h', 'rsoft_qp_to_err', [
        ('to_err.state', '__atomic_compare_exchange_n(&qp->state, &state, RMEM_QPS_ERR, '
         'false, @, ~)'),
    ]),
    ('drivers/soft/queue/rsoft_rq.c', 'rsoft_rq_fail', [
        ('fail.state', 'if (rsoft_qp_to_err(qp)) rsoft_rq_flush(qp)'),
    ]),
    ('drivers/soft/queue/rsoft_rq.c', 'rsoft_rq_flush', [
        ('flush.lock', 'rte_ticketlock_lock(&qp->rq.lock)'),
        ('flush.prod', '__atomic_load_n(&qp->rq.prod, @)'),
        ('flush.unlock', 'rte_ticketlock_unlock(&qp->rq.lock)'),
    ]),
    ('drivers/soft/queue/rsoft_rq.h', 'rsoft_rq_head', [
        ('head.prod', '__atomic_load_n(&rq->prod, @)'),
    ]),
    ('lib/rmem/rmem_uffd.c', 'uffd_event', [
        ('event.slot', '__atomic_load_n(&uffd.slot[i], @)'),
    ]),
    ('lib/rmem/rmem_uffd.c', 'uffd_next', [
        ('event.begin', '__atomic_fetch_add(&rmem_uffd_pass, 1, @)'),
        ('event.end', '__atomic_fetch_add(&rmem_uffd_pass, 1, @)'),
    ]),
    ('lib/rmem/rmem_uffd.c', 'rmem_uffd_unwatch', [
        ('unwatch.slot', '__atomic_store_n(&uffd.slot[i], NULL, @)'),
    ]),
    ('lib/rmem/rmem_uffd.c', 'rmem_uffd_wait', [
        ('unwatch.pass', 'pass = __atomic_load_n(&rmem_uffd_pass, @)'),
        ('unwatch.again', '__atomic_load_n(&rmem_uffd_pass, @) == pass'),
    ]),
    ('drivers/soft/wire/port/rwire_ring.h', 'rwire_ring_get', [
        ('get.head', '__atomic_load_n(&end->ring->head, @)'),
    ]),
    ('drivers/soft/wire/port/rwire_ring.h', 'rwire_ring_put', [
        ('put.number', '__atomic_store_n(&slot->number, ++end->pos, @)'),
    ]),
    ('drivers/soft/wire/port/rwire_ring.h', 'rwire_ring_must_wake', [
        ('wake.fence', 'rte_smp_mb()'),
        ('wake.load', '__atomic_load_n(&end->ring->is_asleep, @)'),
        ('wake.exchange', '__atomic_exchange_n(&end->ring->is_asleep, 0, @)'),
    ]),
    ('drivers/soft/wire/port/rwire_ring.h', 'rwire_ring_is_ready', [
        ('ready.number', '__atomic_load_n(&rwire_ring_slot(end)->number, @)'),
    ]),
    ('drivers/soft/wire/port/rwire_ring.h', 'rwire_ring_release', [
        ('release.head', '__atomic_store_n(&end->ring->head, end->head, @)'),
    ]),
    ('drivers/soft/wire/port/rwire_ring.h', 'rwire_ring_sleep', [
        ('sleep.store', '__atomic_store_n(&end->ring->is_asleep, 1, @)'),
        ('sleep.fence', 'rte_smp_mb()'),
    ]),
]

# What the tests do without where the source does.
FENCES = ('enter.fence', 'start.fence', 'wait.fence', 'wake.fence', 'sleep.fence')
CALLS = ('enter.announce', 'enter_lock.announce', 'enter_lock.lock', 'enter_lock.call',
         'start.call', 'attach.wait', 'quiesce.wait')
CALL = 'call'


def function_of(path, name):
    """The text of a function, or of a file, with one blank for each white space."""
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        text = ctext.strip(file.read())
    if name is not None:
        found = re.search(r'^%s\(.*?^}' % name, text, re.S | re.M)
        if found is None:
            sys.exit('litmus_source.py: %s: no function %s(): adapt SOURCE' % (path, name))
        text = found.group()
    return re.sub(r'(?<=\() | (?=\))', '', re.sub(r'\s+', ' ', text))


def pattern_of(statement):
    pattern = re.escape(statement).replace('@', r'__ATOMIC_(\w+)')
    return pattern.replace('\\~', '~').replace('~', r'__ATOMIC_\w+')


def read_source():
    """The order of each access, by its name."""
    orders = {}
    for path, function, accesses in SOURCE:
        text = function_of(path, function)
        end = 0
        for name, statement in accesses:
            found = [match for match in re.finditer(pattern_of(statement), text)
                     if match.end() > end]
            if found:
                end = found[0].end()
                orders[name] = ORDERS[found[0].group(1)] if '@' in statement else \
                    SC if name in FENCES else CALL
            elif name in FENCES or name in CALLS:
                print('litmus_source.py: %s: %s() has no %s' % (path, function, statement))
                orders[name] = NONE
            else:
                sys.exit('litmus_source.py: %s: %s() has no %s, or not in this place: adapt SOURCE and '
                         'the tests' % (path, function, statement))
    return orders


def weaker(name, order):
    """The next weaker orders."""
    if order == SC:
        return [ACQ_REL] if name in FENCES else [ACQ_REL, ACQ, REL]
    return {ACQ_REL: [ACQ, REL], ACQ: [RLX], REL: [RLX]}.get(order, [])
