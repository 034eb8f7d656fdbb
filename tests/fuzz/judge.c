// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks pathprof's output, which must be well formed for any input file: no
 * control characters, valid JSON, and pictures in valid XML.
 */
#include <ctype.h>
#include <string.h>
#include "fuzz.h"

/* Bytes of the character at s, and its code; 0 if it is not UTF-8. */
static size_t character(const unsigned char *s, size_t left, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 :
		   *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0, i;

	if (!n || n > left)
		return 0;
	*code = n == 1 ? *s : *s & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	return *code < least[n] || *code > 0x10ffff ||
	       (*code >= 0xd800 && *code < 0xe000) ? 0 : n;
}

const char *judge__text(const char *text, size_t n)
{
	uint32_t code = 0;
	size_t at, step;

	for (at = 0; at < n; at += step) {
		step = character((const unsigned char *)text + at, n - at,
				 &code);
		if (!step)
			return "bytes that are not UTF-8";
		if (code != '\n' && code != '\t' &&
		    (code < ' ' || (code >= 0x7f && code < 0xa0)))
			return "a control character";
	}
	return NULL;
}

const char *judge__json(const char *text, size_t n)
{
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);

	json_decref(root);
	return root ? NULL : "not JSON";
}

/* Text of an element or attribute: entities are whole, no half markup. */
static const char *judge_content(const char *text, size_t n)
{
	const char *end;
	uint32_t code;
	size_t at, step;

	for (at = 0; at < n; at += step) {
		step = character((const unsigned char *)text + at, n - at,
				 &code);
		if (!step || (code < ' ' && !isspace((int)code)) ||
		    code == 0xfffe || code == 0xffff)
			return "a character that XML has not";
		if (code == '<')
			return "a \"<\" in a text";
		if (n - at >= 3 && !memcmp(text + at, "]]>", 3))
			return "a \"]]>\" in a text";
		end = memchr(text + at, ';', n - at);
		if (code == '&' && (!end || end - text - at > 6))
			return "a \"&\" that begins no entity";
	}
	return NULL;
}

/* The attributes of a tag, behind its name. */
static const char *judge_attributes(const char *at, const char *end)
{
	const char *why, *quote;

	while (at < end) {
		if (*at++ != ' ')
			return "attributes that are not apart";
		while (at < end && (isalpha((unsigned char)*at) || *at == '-'))
			at++;
		if (end - at < 3 || at[0] != '=' || at[1] != '"')
			return "an attribute without a value";
		at += 2;
		quote = memchr(at, '"', end - at);
		if (!quote)
			return "an attribute without an end";
		why = judge_content(at, quote - at);
		if (why)
			return why;
		at = quote + 1;
	}
	return NULL;
}

/* As strict as XML for what flame writes: no comments, no other encodings. */
const char *judge__svg(const char *text, size_t n)
{
	static const char head[] =
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
	const char *at = text + strlen(head), *end = text + n, *close, *why;
	struct {
		const char *name;
		size_t length;
	} open[16];
	size_t depth = 0, length;

	if (n < strlen(head) || memcmp(text, head, strlen(head)))
		return "no XML declaration";
	while (at < end) {
		close = memchr(at, '<', end - at);
		why = judge_content(at, (close ? close : end) - at);
		if (why || !close)
			return why ? why : depth ? "an element without end" : NULL;
		at = close + 1;
		close = memchr(at, '>', end - at);
		if (!close)
			return "a tag without end";
		length = strcspn(at + 1, " />") + 1;
		if (*at == '/') {
			if (!depth || open[--depth].length != length - 1 ||
			    memcmp(open[depth].name, at + 1, length - 1))
				return "a tag that closes another";
		} else {
			why = judge_attributes(at + length, close -
					       (close[-1] == '/'));
			if (why)
				return why;
			if (close[-1] != '/') {
				if (depth == 16)
					return "elements too deep";
				open[depth].name = at;
				open[depth++].length = length;
			}
		}
		at = close + 1;
	}
	return depth ? "an element without end" : NULL;
}

const char *judge__selves(void)
{
#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	static const struct {
		const char *(*judge)(const char *text, size_t n);
		const char *good, *bad;
	} known[] = {
		{ judge__text, "a\tb\n", "a\033b" },
		{ judge__text, "\303\251", "\302\233" },
		{ judge__text, "", "\177" },
		{ judge__text, "", "\303" },
		{ judge__json, "{\"a\": 1}", "{\"a\": 1" },
		{ judge__svg, HEAD "<g><a x=\"1\"/>b &lt;</g>\n",
		  HEAD "<g><a x=\"1\"/>b <</g>\n" },
		{ judge__svg, HEAD "<g><a></a></g>", HEAD "<g><a></g></a>" },
		{ judge__svg, HEAD "<g>]]&gt;</g>", HEAD "<g>]]></g>" },
		{ judge__svg, HEAD "<g>&amp;</g>", HEAD "<g>& b</g>" },
		{ judge__svg, HEAD "<g></g>", HEAD "<g>\357\277\277</g>" },
		{ judge__svg, HEAD "<g></g>", HEAD "<g a=\"\"b=\"\"></g>" },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i].judge(known[i].good, strlen(known[i].good)))
			return known[i].good;
		if (!known[i].judge(known[i].bad, strlen(known[i].bad)))
			return known[i].bad;
	}
	return NULL;
}
