// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile as plain text of at most 80 columns, or a terminal's width: the
 * head with the account, one row per path, and its stages.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/tool.h"
#include "profile/label.h"
#include "profile/path-id.h"
#include "profile/stats.h"
#include "view/render.h"
#include "view/summary.h"

#define WIDTH	79
#define WIDE	96	/* with two columns more */

unsigned int render__width(void)
{
	struct winsize w;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || w.ws_col < WIDE)
		return WIDTH;
	return w.ws_col;
}

const char *render__header(unsigned int width)
{
	return width < WIDE ?
	       " COST%   PKT%  PACKETS SEG/PKT  BYTES  NS/PKT WAIT/PKT  PATH" :
	       " COST%   PKT%  PACKETS SEG/PKT  BYTES  NS/PKT WAIT/PKT     P50"
	       "     P99  PATH";
}

/*
 * A row of width columns at most.  Words that do not fit go to the next line:
 * the name of a drop reason is never cut.
 */
static void print_row(FILE *f, const struct profile *p,
		      const struct profile_totals *t,
		      const struct profile_path *path, unsigned int width)
{
	const struct path_value *v = &path->sum;
	char a[8], b[8], c[8], d[8], words[PATH_WORDS], quantiles[24] = "";
	char line[128], clean[PATH_WORDS];
	size_t room, cut;
	double n = v->packets ? v->packets : 1;

	path__words(p, path, words, sizeof(words));
	if (width >= WIDE)
		snprintf(quantiles, sizeof(quantiles), " %7s %7s",
			 human(path__quantile(v, 0.5), a),
			 human(path__quantile(v, 0.99), b));
	snprintf(line, sizeof(line), "%5.1f  %5.1f %8s %7.1f %6s %7s %8s%s",
		 t->work_ns ? 100.0 * v->work_ns / t->work_ns : 0,
		 t->packets ? 100.0 * v->packets / t->packets : 0,
		 human(v->packets, a), v->segments / n, human(v->bytes, b),
		 human(v->work_ns / n, c), human(v->wait_ns / n, d), quantiles);
	printable(words, clean, sizeof(clean));
	room = (width < WIDE ? WIDTH : width) - strlen(line) - 2;
	cut = strlen(clean);
	if (cut > room)
		for (cut = room; cut && clean[cut] != ' '; cut--)
			;
	fprintf(f, "%s  %.*s\n", line, (int)cut, clean);
	if (clean[cut])
		fprintf(f, "       %s\n", clean + cut + (clean[cut] == ' '));
}

/* A line of words that wraps at WIDTH. */
static void put_word(FILE *f, size_t *column, const char *word, bool first)
{
	size_t len = strlen(word);

	if (*column + len + 1 > WIDTH) {
		fprintf(f, "\n         ");
		*column = 9;
	}
	fprintf(f, "%s%s", first ? "" : ">", word);
	*column += len + !first;
}

/* What makes a path differ from others of its words; "" if nothing does. */
static const char *difference(const struct profile *p,
			      const struct profile_path *path,
			      const char *label)
{
	char words[PATH_WORDS];

	path__words(p, path, words, sizeof(words));
	return label + strlen(words);
}

/* Words between blanks, in as many lines as they need. */
static void print_wrapped(FILE *f, size_t column, const char *text)
{
	size_t len;

	for (; *text; text += len) {
		text += strspn(text, " ");
		len = strcspn(text, " ");
		if (column + 1 + len > WIDTH) {
			fprintf(f, "\n        ");
			column = 8;
		}
		column += fprintf(f, " %.*s", (int)len, text);
	}
	fputc('\n', f);
}

static void print_stages(FILE *f, const struct profile *p,
			 const struct profile_path *path, const char *more)
{
	size_t column = 7, i;
	char clean[32];

	fprintf(f, "       ");
	for (i = 0; i < path->key.n; i++)
		put_word(f, &column, printable(
			 p->stages[path->key.stages[i] % PATHPROF_STAGE_MAX].name, clean,
			 sizeof(clean)), !i);
	print_wrapped(f, column, more);
}

static void print_detail(FILE *f, const struct profile *p,
			 const struct profile_path *path, const char *more)
{
	const struct path_value *v = &path->sum;
	double n = v->packets ? v->packets : 1;
	const struct profile_stage *s;
	char a[8], b[8], c[8], clean[64], id[PATH_ID];
	char place[512], where[512];
	size_t i, top = 1;
	double high;
	int wide = 9;

	fprintf(f, "       path %s", path__id(p, &path->key, id));
	print_wrapped(f, 12 + PATH_ID - 1, more);
	drop__place(profile__location(p, &path->key), place, sizeof(place));
	if (*place) {
		fprintf(f, "       dropped in");
		print_wrapped(f, 17, printable(place, where, sizeof(where)));
	}
	for (i = 0; i < path->key.n; i++) {
		s = profile__stage(p, &path->key, i);
		if ((int)strlen(s->name) > wide)
			wide = strlen(s->name);
	}
	for (i = 0; i < path->key.n; i++) {
		s = profile__stage(p, &path->key, i);
		fprintf(f, "       %-*s", wide, printable(s->name, clean,
							  sizeof(clean)));
		fprintf(f, " %7s ns %-4s", human(v->stage_ns[i] / n, a),
			s->kind == KIND_WAIT ? "wait" : "");
		if (p->probe_known)
			fprintf(f, " %s%4s", p->subtracted ? "-" : " ",
				human(path->probe_ns[i] / n, b));
		fprintf(f, "  %s\n", printable(s->meaning, clean,
						sizeof(clean)));
	}
	for (i = 0; path->state.packets && i < STATE_MAX; i++)
		fprintf(f, "       %-11s %7s to %-6s mean %-6s %s\n",
			state_name(i), human(path->state.least[i], a),
			human(path->state.most[i], b),
			human((double)path->state.sum[i] /
			      path->state.packets, c), state_meaning(i));
	for (i = 0; i < HIST_BUCKETS; i++)
		if (v->hist[i] > top)
			top = v->hist[i];
	for (i = 0; i < HIST_BUCKETS; i++) {
		if (!v->hist[i])
			continue;
		fprintf(f, "       %6s.. ns %8s  ", human(i ? 1ULL << i : 0, a),
			human(v->hist[i], b));
		for (high = 0; high * top < v->hist[i] * 30.0; high++)
			fputc('#', f);
		fputc('\n', f);
	}
}

static void print_hooks(FILE *f, const struct profile *p,
			const struct profile_totals *t)
{
	char clean[64];
	size_t i, column = 13, missing = 0;

	if (t->missed)
		fprintf(f, "Warning: the kernel skipped %llu hook calls "
			"(nested); counts may be low.\n",
			(unsigned long long)t->missed);
	for (i = 0; i < PATHPROF_STAGE_MAX; i++) {
		if (!p->stages[i].known || p->stages[i].available)
			continue;
		/* Those of --stages, where it was not given. */
		if ((i >= ST_CROSS || i == ST_RX_ICMP || i == ST_TX_ICMP) &&
		    !strstr(p->filter, "stages "))
			continue;
		if (!missing++)
			fprintf(f, "Not seen here:");
		fputc(' ', f);
		put_word(f, &column, printable(p->stages[i].name, clean,
					       sizeof(clean)), true);
		column++;
	}
	if (missing)
		fputc('\n', f);
}

static void print_losses(FILE *f, const struct profile *p)
{
	size_t i;

	for (i = 0; i < PATHPROF_COUNTER_MAX; i++)
		if (counter_name(i) && counter_is_loss(i) && p->counters[i])
			fprintf(f, "  lost %llu: %s (%s)\n",
				(unsigned long long)p->counters[i],
				counter_name(i), counter_meaning(i));
	if (p->ends[END_STALE])
		fprintf(f, "  lost %llu: stale (end not seen; path counted)\n",
			(unsigned long long)p->ends[END_STALE]);
	if (p->ends[END_EVICTED])
		fprintf(f, "  lost %llu: evicted (gave up its slot while it "
			"waited; path counted)\n",
			(unsigned long long)p->ends[END_EVICTED]);
}

/* pathprof's own share of all work: subtracted from the times, or in them. */
static void print_probe(FILE *f, const struct profile *p)
{
	char with[8], without[8];
	struct profile_totals t;
	uint64_t own = 0;
	size_t i, at;

	if (!p->probe_known) {
		if (p->probe_ns)
			fprintf(f, "Probe: each stage's time includes some "
				"%llu ns of pathprof's own\n",
				(unsigned long long)p->probe_ns);
		return;
	}
	profile__totals(p, &t);
	for (i = 0; i < p->npaths; i++)
		for (at = 0; at < p->paths[i].key.n; at++)
			if (p->stages[p->paths[i].key.stages[at] % PATHPROF_STAGE_MAX].kind !=
			    KIND_WAIT)
				own += p->paths[i].probe_ns[at];
	fprintf(f, "Probe: of %s ns work as measured %s are pathprof's own: %s\n",
		human(t.work_ns + (p->subtracted ? own : 0), with),
		human(own, without),
		p->subtracted ? "subtracted" : "included (--raw)");
}

void render__head(FILE *f, const struct profile *p,
		  const struct profile *total)
{
	double seconds = p->duration_ns / 1e9, open = p->open_ns / 1e9;
	char a[8], addr[56], filter[80] = "", how[40], release[25], only[74];
	struct profile_totals t, all;
	size_t at = 0;

	profile__totals(p, &t);
	profile__totals(total, &all);
	if (p->port)
		at = snprintf(filter, sizeof(filter), "  port %u", p->port);
	if (*p->addr)
		snprintf(filter + at, sizeof(filter) - at, "  addr %s",
			 printable(p->addr, addr, sizeof(addr)));
	if (p->budget_ppm)
		snprintf(how, sizeof(how), "bursts, open %.2f", open);
	else
		snprintf(how, sizeof(how), "1 in %u packets", p->sample);
	fprintf(f, "pathprof  Linux %s  %s%s  %.1f s  %s sampled/s\n",
		printable(p->release, release, sizeof(release)), how, filter,
		seconds, human(open > 0 ? t.packets / open : 0, a));
	if (*p->filter)
		fprintf(f, "Only: %s\n",
			printable(p->filter, only, sizeof(only)));
	fprintf(f, "Account: %llu sampled = %llu done + %llu dropped + "
		"%llu lost + %llu still followed",
		(unsigned long long)total->counters[CN_SAMPLED],
		(unsigned long long)all.done, (unsigned long long)all.dropped,
		(unsigned long long)all.lost,
		(unsigned long long)total->followed);
	if (all.unaccounted)
		fprintf(f, " %+lld ?", (long long)all.unaccounted);
	fputc('\n', f);
	print_losses(f, total);
	print_probe(f, total);
	if (t.data)
		fprintf(f, "Header prediction: %llu of %llu received data "
			"packets (%.1f %%)\n", (unsigned long long)t.fast_data,
			(unsigned long long)t.data,
			100.0 * t.fast_data / t.data);
	print_hooks(f, total, &all);
}

/* Work by category, and waiting on a line of its own. */
static void print_categories(FILE *f, const struct profile *p)
{
	uint64_t ns[PATHPROF_CATEGORY_MAX], work = 0;
	const char *comma = "";
	int i;

	profile__categories(p, ns);
	for (i = 0; i < PATHPROF_CATEGORY_MAX; i++)
		work += i == CAT_QUEUE ? 0 : ns[i];
	if (!work)
		return;
	fprintf(f, "Work: ");
	for (i = 0; i < PATHPROF_CATEGORY_MAX; i++) {
		if (i == CAT_QUEUE)
			continue;
		fprintf(f, "%s%s %.1f %%", comma, category_name(i),
			100.0 * ns[i] / work);
		comma = ", ";
	}
	putc('\n', f);
}

/* How long each stage took, over all paths. */
static void print_stage_times(FILE *f, const struct profile *p)
{
	char n[8], mean[8], p50[8], p99[8], clean[32];
	struct path_value v;
	bool any = false;
	size_t i;

	for (i = 0; i < PATHPROF_STAGE_MAX; i++) {
		if (!p->stages[i].known || !stage__times(p, i, &v))
			continue;
		if (!any)
			fprintf(f, "STAGE      PACKETS  NS/PKT     P50     P99\n");
		any = true;
		fprintf(f, "%-10s %7s %7s %7s %7s%s\n",
			printable(p->stages[i].name, clean, sizeof(clean)),
			human(v.packets, n), human(path__mean(&v), mean),
			human(path__quantile(&v, 0.5), p50),
			human(path__quantile(&v, 0.99), p99),
			p->stages[i].kind == KIND_WAIT ? "  wait" : "");
	}
}

/* Which protocols were followed, and what follows the others. */
static void print_nothing(FILE *f, const struct profile *p)
{
	/* --stages needs it, and sampling bursts have none. */
	const char *icmp = p->budget_ppm ? "--sample 1 --stages icmp" :
					   "--stages icmp";

	fprintf(f, "\nNo packets were sampled: ");
	if (p->udp && p->icmp)
		fprintf(f, "TCP, UDP and ICMP were followed.\n");
	else if (p->udp)
		fprintf(f, "TCP and UDP were followed; %s%sadds ICMP.\n", icmp,
			p->budget_ppm ? "\n" : " ");
	else if (p->icmp)
		fprintf(f, "TCP and ICMP were followed; --udp adds UDP.\n");
	else
		fprintf(f, "only TCP was followed; --udp and\n%s follow "
			"more.\n", icmp);
}

void render__text(FILE *f, const struct profile *p,
		  const struct profile *total,
		  const struct render_options *options)
{
	size_t *order = path__order(p, options->sort), i, n = p->npaths;
	unsigned int width = render__width();
	label_text *names = labels(p, false);
	struct profile_totals t;
	const char *more;

	profile__totals(p, &t);
	render__head(f, p, total);
	if (!order || !names || !n) {
		print_nothing(f, p);
		free(order);
		free(names);
		return;
	}
	if (options->limit && n > options->limit)
		n = options->limit;
	fprintf(f, "\n%s\n", render__header(width));
	for (i = 0; i < n; i++) {
		print_row(f, p, &t, &p->paths[order[i]], width);
		more = difference(p, &p->paths[order[i]], names[order[i]]);
		if (options->detail)
			print_detail(f, p, &p->paths[order[i]], more);
		else if (options->stages)
			print_stages(f, p, &p->paths[order[i]], more);
	}
	if (n < p->npaths)
		fprintf(f, "(%zu rarer paths not shown)\n", p->npaths - n);
	if (options->detail)
		print_stage_times(f, p);
	print_categories(f, p);
	fprintf(f, "COST%%: share of all work time.  NS/PKT: mean work, "
		"WAIT/PKT: mean time in\nqueues, in ns (K thousand, M "
		"million).  Stages of a path are joined by \">\".\n");
	if (width >= WIDE)
		fprintf(f, "P50, P99: of the work of a packet, estimated from "
			"powers of two.\n");
	free(order);
	free(names);
}
