/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Sockets by which processes and devices share the XRC domain of a file.
 *
 * Their abstract names contain device and inode of the file. A handle of a domain listens at the
 * first free slot of its device, whose name is in the name, so that other processes find that the
 * domain exists. An SRQ listens at its number, which makes numbers unique among the processes and
 * devices that have the file; and an XRC_RECV QP at its number, of the device of that name. Names
 * end with the process.
 *
 * A process of any user can connect to a name, or take it. So each end of a connection checks that
 * the kernel reports its own user for the other end, and that this passes a descriptor of the file
 * (rwire_xrc_socket_is_file()), as ibv_open_xrcd(3) requires one.
 *
 * The caller of a function that returns a descriptor lists it in the same section (rsoft_fork.h).
 */

#ifndef RWIRE_XRC_SOCKET_H
#define RWIRE_XRC_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include <rmem_xrcd.h>

#define RWIRE_XRC_SLOTS 1024 /* handles of a domain, in all processes */

/* Kinds of names. */
#define RWIRE_XRC_SRQ    's' /* number: of an SRQ */
#define RWIRE_XRC_HANDLE 'h' /* number: a slot */
#define RWIRE_XRC_QP     'q' /* number: of an XRC_RECV QP */

/* Listen at a name: a descriptor, -EADDRINUSE, or -ENOMEM. Logs the latter. */
int rwire_xrc_socket_listen(const struct rmem_xrcd *xrcd, char kind, uint32_t number);

/*
 * Connect to a name: a descriptor, -ECONNREFUSED (no process of this user has the name), -EAGAIN
 * (later), or -ENFILE (no descriptor is free).
 */
int rwire_xrc_socket_connect(const struct rmem_xrcd *xrcd, char kind, uint32_t number);

/* Accept a connection of this user: a descriptor, -EAGAIN (none waits), -EPERM or -ENFILE. */
int rwire_xrc_socket_accept(int listener);

/* Close a descriptor that an epoll instance watches, and clear it; -1: none is open. */
void rwire_xrc_socket_unwatch(int epoll, int *fd);

/* Whether a handle of the domain listens at one of the first nb slots. */
bool rwire_xrc_socket_exists(const struct rmem_xrcd *xrcd, uint32_t nb);

/* Whether a passed descriptor is of the file of the domain, opened for more than its path. */
bool rwire_xrc_socket_is_file(const struct rmem_xrcd *xrcd, int passed);

#endif /* RWIRE_XRC_SOCKET_H */
