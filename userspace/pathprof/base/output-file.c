// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes files, as root in most cases, so it replaces nothing but regular
 * files: renaming over a device node or a FIFO would remove it, and a symbolic
 * link may lead to a file that its owner did not mean to give up.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/output-file.h"

static int refuse(char *err, size_t len, int rc, const char *path)
{
	snprintf(err, len, "cannot write %s: %s", path, strerror(-rc));
	return rc;
}

/* Is there anything that must not be replaced? */
static int check_type(const char *path, char *err, size_t len)
{
	struct stat st;
	const char *what;

	if (lstat(path, &st) || S_ISREG(st.st_mode))
		return 0;	/* what else is wrong shows when it is created */
	if (S_ISDIR(st.st_mode))
		return refuse(err, len, -EISDIR, path);
	what = S_ISLNK(st.st_mode) ? "a symbolic link" :
	       S_ISFIFO(st.st_mode) ? "a FIFO" :
	       S_ISSOCK(st.st_mode) ? "a socket" : "a device";
	snprintf(err, len, "cannot write %s: it is %s, and a file would "
		 "replace it (- stands for stdout)", path, what);
	return -EINVAL;
}

static int temp_name(const char *path, char *temp, size_t size)
{
	if (snprintf(temp, size, "%s.XXXXXX", path) >= (int)size)
		return -ENAMETOOLONG;
	return 0;
}

bool output_file__is_stdout(const char *path)
{
	return !strcmp(path, "-");
}

int output_file__check(const char *path, char *err, size_t len)
{
	char temp[4096];
	int fd, rc;

	if (output_file__is_stdout(path))
		return 0;
	if (!*path)
		return refuse(err, len, -ENOENT, "a file without a name");
	rc = check_type(path, err, len);
	if (rc)
		return rc;
	if (temp_name(path, temp, sizeof(temp)))
		return refuse(err, len, -ENAMETOOLONG, path);
	fd = mkstemp(temp);
	if (fd < 0)
		return refuse(err, len, -errno, path);
	close(fd);
	unlink(temp);
	return 0;
}

static int fill_stdout(int (*fill)(FILE *f, void *arg), void *arg, char *err,
		       size_t len)
{
	errno = 0;
	if (!fill(stdout, arg) && !fflush(stdout) && !ferror(stdout))
		return 0;
	return refuse(err, len, errno ? -errno : -EIO, "stdout");
}

int output_file__write(const char *path, int (*fill)(FILE *f, void *arg),
		       void *arg, char *err, size_t len)
{
	char temp[4096];
	mode_t mask;
	int fd, rc;
	FILE *f;

	if (output_file__is_stdout(path))
		return fill_stdout(fill, arg, err, len);
	rc = check_type(path, err, len);
	if (rc)
		return rc;
	if (temp_name(path, temp, sizeof(temp)))
		return refuse(err, len, -ENAMETOOLONG, path);
	fd = mkstemp(temp);
	if (fd < 0)
		return refuse(err, len, -errno, path);
	f = fdopen(fd, "w");
	if (!f) {
		rc = -errno;
		close(fd);
		unlink(temp);
		return refuse(err, len, rc, path);
	}
	mask = umask(0);
	umask(mask);
	fchmod(fd, 0666 & ~mask);
	errno = 0;
	if (fill(f, arg) || fflush(f) || ferror(f) || fsync(fd))
		rc = errno ? -errno : -EIO;
	if (fclose(f) && !rc)
		rc = -errno;
	if (!rc && rename(temp, path))
		rc = -errno;
	if (rc)
		unlink(temp);
	return rc ? refuse(err, len, rc, path) : 0;
}
