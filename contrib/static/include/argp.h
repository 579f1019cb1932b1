/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What elfutils' library for its own programs wants of argp, which musl does not have: enough to compile it. Nothing of
 * it is linked, since libelf uses none of it.
 */
#ifndef ARGP_H
#define ARGP_H

#include <errno.h>
#include <stdio.h>

typedef int error_t;
struct argp_state {
	char *name;
	FILE *out_stream;
	FILE *err_stream;
};
struct argp_option {
	const char *name;
	int key;
	const char *arg;
	int flags;
	const char *doc;
	int group;
};
struct argp {
	const struct argp_option *options;
	error_t (*parser)(int, char *, struct argp_state *);
	const char *args_doc;
	const char *doc;
	const void *children;
	char *(*help_filter)(int, const char *, void *);
	const char *argp_domain;
};
#define OPTION_ARG_OPTIONAL 1
#define ARGP_ERR_UNKNOWN E2BIG
#define ARGP_HELP_SEE 4

void argp_help(const struct argp *argp, FILE *stream, unsigned int flags, char *name);

#endif
