/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Telemetry and dumps, for libraries above the class.
 *
 * Handlers run on a DPDK thread. They walk a list with the lock of the list held, so that no object
 * is released concurrently.
 */

#ifndef RMEM_TELEMETRY_H
#define RMEM_TELEMETRY_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_telemetry.h>
#include <rte_version.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Sink of the properties of an object: a reply of telemetry, or a file. */
struct rmem_report {
	struct rte_tel_data *d; /**< Dictionary; NULL: the sink is f. */
	FILE *f;                /**< File, with a property in each line. */
	uint32_t depth;         /**< Number of open groups; each indents the file by two spaces. */
	uint32_t reserved;      /**< Zero. */
};

/**
 * Report a number.
 *
 * @param report
 *   Sink.
 * @param name
 *   Name of the property.
 * @param value
 *   Number.
 */
void rmem_report_uint(struct rmem_report *report, const char *name, uint64_t value);

/**
 * Report bits or a key, in hexadecimal.
 *
 * @param report
 *   Sink.
 * @param name
 *   Name of the property.
 * @param bits
 *   Bits.
 */
void rmem_report_bits(struct rmem_report *report, const char *name, uint64_t bits);

/**
 * Report a text.
 *
 * @param report
 *   Sink.
 * @param name
 *   Name of the property.
 * @param text
 *   Text.
 */
void rmem_report_text(struct rmem_report *report, const char *name, const char *text);

/**
 * Begin a group of properties.
 *
 * @param report
 *   Sink of the group around it.
 * @param group
 *   Sink of the group. Without memory for it, its properties are dropped. End it with
 *   rmem_report_end().
 * @param name
 *   Name of the group.
 */
void rmem_report_begin(struct rmem_report *report, struct rmem_report *group, const char *name);

/**
 * End a group of properties.
 *
 * @param report
 *   Sink of the group around it.
 * @param group
 *   Sink of the group; no longer valid.
 * @param name
 *   Name of the group.
 */
void rmem_report_end(struct rmem_report *report, struct rmem_report *group, const char *name);

/**
 * Text of a dump.
 *
 * A write to the caller's stream may block until the stream is read, so a dump that takes a lock
 * prints to memory while it holds the lock, and to the stream after it released the lock.
 */
struct rmem_dump {
	FILE *f;           /**< Stream in memory. */
	char *text;        /**< Printed so far; private. */
	size_t size;       /**< Its length; private. */
	uint64_t reserved; /**< Zero. */
};

/**
 * Begin a dump.
 *
 * @param[out] dump
 *   Dump, with a stream to print to. End it with rmem_dump_end().
 *
 * @return
 *   0 on success, otherwise:
 *   - -ENOMEM: no memory.
 */
int rmem_dump_begin(struct rmem_dump *dump);

/**
 * End a dump: print what it has. Call without a lock.
 *
 * @param dump
 *   Dump; no longer valid.
 * @param to
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -ENOMEM: there was no memory for the text. Nothing is printed.
 */
int rmem_dump_end(struct rmem_dump *dump, FILE *to);

/** Command of telemetry: objects of one kind, listed or by name. */
struct rmem_tel_cmd {
	const char *cmd;  /**< Command, such as "/rmem/pool". */
	const char *help; /**< Description of the command and its parameter. */
	/** Reply without a parameter: the names of the objects. */
	int (*list)(struct rte_tel_data *d);
	/** Reply for the object of a name; -errno if there is none. */
	int (*get)(const char *name, struct rte_tel_data *d);
	uint64_t reserved[2]; /**< Zero. */
};

/**
 * Register a command.
 *
 * For constructors (RTE_INIT). Not safe to call from several threads.
 *
 * @param cmd
 *   Command; it must stay valid.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL cmd, or a field that is NULL.
 *   - -ENOSPC: too many commands.
 */
int rmem_telemetry_add(const struct rmem_tel_cmd *cmd);

/** Names for a reply; names beyond the size of the reply are only counted. */
struct rmem_tel_names {
	struct rte_tel_data *d; /**< Array of names. */
	uint32_t nb;            /**< Names added. */
	uint32_t reserved;      /**< Zero. */
};

/**
 * Add a name to names of rmem_tel_names_begin().
 *
 * @param names
 *   Names.
 * @param name
 *   Name of an object.
 */
void rmem_tel_names_add(struct rmem_tel_names *names, const char *name);

/**
 * Begin a reply that lists names.
 *
 * @param[out] names
 *   Names, none yet.
 *
 * @return
 *   0 on success, otherwise:
 *   - -ENOMEM: no memory for the names.
 */
int rmem_tel_names_begin(struct rmem_tel_names *names);

/**
 * End a reply that lists names: their number, and the names.
 *
 * @param names
 *   Names; no longer valid.
 * @param key
 *   Name of the list.
 * @param d
 *   Reply.
 *
 * @return
 *   0 on success, otherwise:
 *   - -ENOMEM: no memory for the reply.
 *   - -EINVAL: NULL d.
 */
int rmem_tel_names_end(struct rmem_tel_names *names, const char *key, struct rte_tel_data *d);

/**
 * Add a number to a dictionary, with the function of this DPDK version.
 *
 * @param d
 *   Dictionary.
 * @param name
 *   Name of the value.
 * @param value
 *   Value.
 */
static inline void
rmem_tel_uint(struct rte_tel_data *d, const char *name, uint64_t value)
{
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
	rte_tel_data_add_dict_uint(d, name, value);
#else
	rte_tel_data_add_dict_u64(d, name, value);
#endif
}

/**
 * Add bits to a dictionary, in hexadecimal.
 *
 * @param d
 *   Dictionary.
 * @param name
 *   Name of the value.
 * @param bits
 *   Bits.
 */
static inline void
rmem_tel_bits(struct rte_tel_data *d, const char *name, uint64_t bits)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, bits);
	rte_tel_data_add_dict_string(d, name, text);
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_TELEMETRY_H */
