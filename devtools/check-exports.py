#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare libibverbs and librdmacm with what the drop-in library defines, implements or refuses.

usage: check-exports.py [ROOT [LIBRARY]]

Below ROOT (/ by default) are a libibverbs.so.1, a librdmacm.so.1 and the header of libibverbs. Each
function that libibverbs exports to programs is defined by the drop-in, or in a list here: by LIBRARY, which
is built with that header, or by the list of ribv_pass.h. Each operation that the header calls through a
context is set by the drop-in (ribv_ops.c), in a list, or that of an exported function, which it defines.
So a function of a newer rdma-core is an error until it is defined or listed. The functions of librdmacm
are not replaced: they use the commands of /dev/infiniband/rdma_cm.
"""
import glob
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Exports that concern no object of a device; or files, which the preloaded library shows.
NO_OBJECT = frozenset('''
    ibv_copy_ah_attr_from_kern ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern
    ibv_copy_qp_attr_from_kern ibv_dofork_range ibv_dontfork_range ibv_event_type_str ibv_fork_init
    ibv_get_device_name ibv_get_sysfs_path ibv_is_fork_initialized ibv_node_type_str
    ibv_port_state_str ibv_rate_to_mbps ibv_rate_to_mult ibv_read_sysfs_file ibv_wc_status_str
    ibv_wc_opcode_str ibv_qp_state_str ibv_mtu_to_num ibv_register_driver
    mbps_to_ibv_rate mult_to_ibv_rate
'''.split())

# Operations of a context that are refused, with the reason, or that providers alone call.
REFUSED = {
    'attach_counters_point_flow': 'flow steering',
    'create_counters': 'flow steering',
    'create_flow': 'flow steering',
    'create_flow_action_esp': 'flow steering',
    'create_rwq_ind_table': 'RSS',
    'create_wq': 'RSS',
    'destroy_counters': 'flow steering',
    'destroy_flow': 'flow steering',
    'destroy_flow_action': 'flow steering',
    'destroy_rwq_ind_table': 'RSS',
    'destroy_wq': 'RSS',
    'modify_flow_action_esp': 'flow steering',
    'modify_wq': 'RSS',
    'post_srq_ops': 'tag matching',
    'read_counters': 'flow steering',
}


def exports(path):
    """Names of the functions of a library that programs may call."""
    out = subprocess.run(['nm', '-D', '--defined-only', '--with-symbol-versions', path],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in out.splitlines():
        name, _, version = line.split()[-1].replace('@@', '@').partition('@')
        if line.split()[-2] in 'Tti' and 'PRIVATE' not in version:
            yield name


def find(root, name):
    found = sorted(glob.glob(os.path.join(root, 'usr/lib/*', name)) +
                   glob.glob(os.path.join(root, 'usr/lib*', name)))
    if not found:
        print('check-exports.py: skipped: no %s below %s' % (name, root))
        sys.exit(77)
    return found[0]


def read(*path):
    with open(os.path.join(*path), encoding='utf-8') as file:
        return file.read()


def operations(header):
    """Pointers to functions in struct verbs_context: what inline functions call."""
    struct = re.search(r'struct verbs_context \{(.*?)\n\};', header, re.S)[1]
    return re.findall(r'\(\*(\w+)\)\(', struct)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else '/'
    if len(sys.argv) > 2:
        defined = set(exports(sys.argv[2]))
    else:
        defined = set(re.findall(r'PASS\w*\((?:[\w *]+, )?(_?ibv_\w+),', read(TOP, 'dropin/preload/ribv_pass.h')))
    ops = set(re.findall(r'context->(\w+) =', read(TOP, 'dropin/verbs/ribv_ops.c')))
    names = set(exports(find(root, 'libibverbs.so.1')))
    wanted = [name for name in operations(read(root, 'usr/include/infiniband/verbs.h'))
              if 'ibv_' + name not in names]
    cm_names = list(exports(find(root, 'librdmacm.so.1')))
    bad = ['%s(): exported by libibverbs, neither defined nor listed' % name
           for name in sorted(names - defined - NO_OBJECT)]
    bad += ['%s: an operation of verbs.h, neither set nor listed' % name
            for name in wanted if name not in ops and name not in REFUSED and not name.startswith('_')]
    print('\n'.join(bad + ['check-exports.py: %s: %d functions of libibverbs defined, %d without object; '
                           '%d operations set, %d refused; %d functions of librdmacm use its commands' % (
                               root, len(names & defined), len(names & NO_OBJECT),
                               len([name for name in wanted if name in ops]),
                               len([name for name in wanted if name in REFUSED and name not in ops]), len(cm_names))]))
    return 1 if bad else 0


sys.exit(main())
