// SPDX-License-Identifier: GPL-2.0-only
/*
 * Output to a terminal or a pipe: messages, text that is safe to show, JSON,
 * and the final check of stdout.
 */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/tool.h"

/*
 * Bytes of the UTF-8 character at s; 0 if it is invalid, a C1 control, or one
 * of the two that XML forbids.
 */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : s[0] >= 0xe0 ? 3 :
		   s[0] >= 0xc2 ? 2 : 0, i;

	if (s[0] >= 0xf5 || (s[0] == 0xc2 && s[1] < 0xa0))
		return 0;
	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* An overlong encoding of another character. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90))
		return 0;
	return s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe ? 0 : n;
}

const char *printable(const char *text, char *out, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t at = 0, n;

	while (*s) {
		n = *s < 0x80 ? 1 : utf8_length(s);
		if (at + (n ? n : 1) >= size)
			break;
		if (!n || *s < ' ' || *s == 0x7f) {
			out[at++] = '?';
			s++;
			continue;
		}
		while (n--)
			out[at++] = *s++;
	}
	out[at] = 0;
	return out;
}

const char *human(double v, char out[8])
{
	static const char units[] = " KMGTPE";
	int u = 0;

	while (v >= 999.5 && u < 6) {
		v /= 1000;
		u++;
	}
	if (!u)
		snprintf(out, 8, "%.0f", v);
	else
		snprintf(out, 8, v < 9.95 ? "%.1f%c" : "%.0f%c", v, units[u]);
	return out;
}

void complain(const char *format, ...)
{
	char text[1024], clean[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "pathprof: %s\n",
		printable(text, clean, sizeof(clean)));
}

/* JSON escapes the other control characters, but allows DEL as it is. */
static int put_json(const char *text, size_t n, void *unused)
{
	(void)unused;
	for (; n--; text++)
		if (*text == 0x7f)
			fputs("\\u007f", stdout);
		else
			putchar(*text);
	return 0;
}

int print_json(json_t *root, size_t flags)
{
	int rc = root ? json_dump_callback(root, put_json, NULL, flags |
					   JSON_ENSURE_ASCII) : -1;

	json_decref(root);
	if (rc) {
		complain("out of memory");
		return EXIT_FAILED;
	}
	putchar('\n');
	return EXIT_GOOD;
}

int exit_status(int rc)
{
	return !rc ? EXIT_GOOD : rc == -EOPNOTSUPP ? EXIT_UNSUPPORTED :
	       EXIT_FAILED;
}

int finish_stdout(int status)
{
	if (fflush(stdout) || ferror(stdout)) {
		complain("cannot write the output: %s", strerror(errno));
		return status ? status : EXIT_FAILED;
	}
	return status;
}
