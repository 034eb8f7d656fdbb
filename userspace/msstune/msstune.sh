#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Starts msstune from the source tree or an installed copy: the package lies
# beside this script or in ../share/msstune, mssab beside the name it was called by.
here=$(dirname "$(readlink -f "$0")")
for lib in "$here" "$here/../share/msstune"; do
	[ -d "$lib/msstune" ] && break
done
PATH=$(dirname "$0"):$PATH PYTHONPATH=$lib PYTHONDONTWRITEBYTECODE=1 \
	exec /usr/bin/python3 -m msstune "$@"
