/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one way in which commands write files.  A path is "-", for stdout, or it
 * names a regular file, or nothing yet.
 */
#ifndef PATHPROF_OUTPUT_FILE_H
#define PATHPROF_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Is it stdout? */
bool output_file__is_stdout(const char *path);
/*
 * Can path be written?  Creates nothing that stays.  0, or a negative errno and
 * a sentence in err: directories, devices, FIFOs, sockets and symbolic links
 * are refused.
 */
int output_file__check(const char *path, char *err, size_t len);
/*
 * Write what fill() writes; errors as above.  A file is complete or not there:
 * it is written under another name in the same directory, then renamed.
 */
int output_file__write(const char *path, int (*fill)(FILE *f, void *arg),
		       void *arg, char *err, size_t len);

#endif
