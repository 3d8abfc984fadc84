/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#ifndef RSOFT_NUMBER_H
#define RSOFT_NUMBER_H

#include <locale.h>
#include <stdlib.h>

/* strtod() with a decimal point, independent of the program's locale. */
static inline double
rsoft_strtod(const char *text, char **end)
{
	locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	locale_t before = plain != (locale_t)0 ? uselocale(plain) : (locale_t)0;
	double number = strtod(text, end);

	if (plain != (locale_t)0) {
		uselocale(before);
		freelocale(plain);
	}
	return number;
}

#endif /* RSOFT_NUMBER_H */
